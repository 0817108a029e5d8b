// The 402: version 2 in a header, version 1 in the body, so that a client that reads either can pay.
import type { PaymentRequired } from '@x402/core/types';
import type { Json, JsonObject } from '#src/domain/canonical-json.ts';
import type { Route } from '#src/domain/event-fields.ts';
import type { Clock } from '#src/ports/clock.ts';
import type { Challenge, ChallengeAsk } from '#src/ports/payment-protocol.ts';
import type { Offers } from './offers.ts';
import type { Asked } from './requirements.ts';

/** An offer stands this long, and one signature serves all that ask within a minute: a 402 is free to ask for. */
const OFFER_MS = 300_000;
const OFFER_SHARED_MS = 60_000;

export type Challenger = (ask: ChallengeAsk) => Promise<Challenge>;

export function challenger(deps: {
  readonly asked: Asked;
  readonly offers: Offers;
  readonly clock: Clock;
}): Challenger {
  const { asked, offers, clock } = deps;
  const shared = new Map<Route, { readonly signedAtMs: number; readonly extensions: Promise<Extensions> }>();

  /** Those asked at once share one signature; one that failed is not kept. */
  function extensionsOf(route: Route): Promise<Extensions> {
    const nowMs = clock.now();
    const held = shared.get(route);
    if (held !== undefined && Math.abs(nowMs - held.signedAtMs) < OFFER_SHARED_MS) return held.extensions;
    const { required, discovery } = asked.routes[route];
    const extensions = offers
      .offer(required, nowMs + OFFER_MS)
      .then((offer) => ({ ...discovery.extension, ...offer }));
    shared.set(route, { signedAtMs: nowMs, extensions });
    extensions.catch(() => shared.delete(route));
    return extensions;
  }

  return async ({ route, reason, hints }) => {
    const { required, acceptsV1 } = asked.routes[route];
    const error = reason === 'payment_required' ? reason : `payment_required: ${reason}`;
    const challenge: PaymentRequired = { ...required, error, extensions: await extensionsOf(route) };
    return {
      headers: { 'PAYMENT-REQUIRED': base64Json(challenge) },
      body: {
        x402Version: 1,
        error,
        accepts: acceptsV1 as unknown as readonly Json[],
        ...(hints.length === 0 ? {} : { validation: hints.map(({ path, message }) => ({ path, message })) }),
      } satisfies JsonObject,
    };
  };
}

type Extensions = Readonly<Record<string, unknown>>;

/** As the protocol writes its headers: standard base64 of UTF-8 JSON. */
export const base64Json = (value: object): string =>
  Buffer.from(JSON.stringify(value), 'utf8').toString('base64');
