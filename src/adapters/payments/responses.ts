// The 402 and PAYMENT-RESPONSE, with the signed offers and payment receipts of the extension offer-receipt. The key of our
// receipts signs them; their JWS have no `typ`, so that none is accepted as a receipt of ours.
import type { PaymentRequired } from '@x402/core/types';
import {
  createJWS,
  createOfferReceiptExtension,
  type JWSSigner,
  OFFER_RECEIPT,
  type OfferReceiptIssuer,
} from '@x402/extensions/offer-receipt';
import type { Json, JsonObject } from '#src/domain/canonical-json.ts';
import { toBase64url } from '#src/domain/encoding.ts';
import type { Route } from '#src/domain/event-fields.ts';
import { didKeyId } from '#src/domain/signing-keys/keys.ts';
import { isObject } from '#src/lib/is-object.ts';
import type { Clock } from '#src/ports/clock.ts';
import type { PaymentProtocol, Settlement } from '#src/ports/payment-protocol.ts';
import type { Signer, SigningKey } from '#src/ports/signer.ts';
import { IDENTIFIER_OFFER } from './payment-identifier.ts';
import { networkNameV1, type Pricing, type Terms } from './requirements.ts';

export type OfferKey = {
  readonly signer: Signer;
  /** did:web of this relay, whose document lists the signer's keys. */
  readonly did: string;
};

type Extensions = Readonly<Record<string, unknown>>;

/** Lifetime of an offer. All requests within a minute share one signature, because requesting a 402 is free. */
const OFFER_MS = 300_000;
const OFFER_SHARED_MS = 60_000;

/** Builds the 402 for clients of both versions: version 2 in a header, version 1 in the body. */
export function challengeBuilder(deps: {
  readonly pricing: Pricing;
  readonly offerKey: OfferKey;
  readonly clock: Clock;
}): PaymentProtocol['challenge'] {
  const { pricing, offerKey, clock } = deps;
  const shared = new Map<Route, { readonly signedAtMs: number; readonly extensions: Promise<Extensions> }>();

  function extensionsOf(route: Route): Promise<Extensions> {
    const nowMs = clock.now();
    const held = shared.get(route);
    if (held !== undefined && Math.abs(nowMs - held.signedAtMs) < OFFER_SHARED_MS) return held.extensions;
    const { inHeader } = pricing.routes[route];
    const extensions = signedOffer(offerKey, inHeader, nowMs + OFFER_MS).then((offer) => ({
      ...inHeader.extensions,
      ...IDENTIFIER_OFFER,
      ...offer,
    }));
    shared.set(route, { signedAtMs: nowMs, extensions });
    extensions.catch(() => shared.delete(route));
    return extensions;
  }

  return async ({ route, reason, message, hints, ticket }) => {
    const { inHeader, acceptsV1 } = ticket === undefined ? pricing.routes[route] : pricing.ticketOf(ticket);
    const error = reason === 'payment_required' ? reason : `payment_required: ${reason}`;
    // The terms of a run are its own, so that its offer is too; its route has a rate limit before the 402.
    const extensions =
      ticket === undefined
        ? await extensionsOf(route)
        : { ...inHeader.extensions, ...(await signedOffer(offerKey, inHeader, clock.now() + OFFER_MS)) };
    const challenge: PaymentRequired = { ...inHeader, error, extensions };
    return {
      headers: { 'PAYMENT-REQUIRED': base64Json(challenge) },
      body: {
        x402Version: 1,
        error,
        ...(message === null ? {} : { message }),
        accepts: acceptsV1 as unknown as readonly Json[],
        ...(hints.length === 0 ? {} : { validation: hints.map(({ path, message }) => ({ path, message })) }),
      } satisfies JsonObject,
    };
  };
}

/** PAYMENT-RESPONSE, and X-PAYMENT-RESPONSE for version 1. The same settlement always gives the same headers. */
export const settlementHeaders =
  (deps: { readonly pricing: Pricing; readonly offerKey: OfferKey }): PaymentProtocol['settled'] =>
  async (settlement) => {
    const { payment, x402Version } = settlement;
    const { payer, network, amount } = payment;
    // The protocol's value for an unknown transaction.
    const transaction = payment.transaction ?? '';
    const extensions = settlement.delivered ? await signedReceipt(deps, settlement) : {};
    const extended = Object.keys(extensions).length === 0 ? {} : { extensions };
    const response = { success: true, transaction, network, payer, amount, ...extended };
    const headers = { 'PAYMENT-RESPONSE': base64Json(response) };
    if (x402Version === 2) return headers;
    const v1 = { success: true, transaction, network: networkNameV1(network) ?? network, payer };
    return { ...headers, 'X-PAYMENT-RESPONSE': base64Json(v1) };
  };

/** The protocol's form of headers: standard base64 of UTF-8 JSON. */
const base64Json = (value: object): string => Buffer.from(JSON.stringify(value), 'utf8').toString('base64');

/** The member of `extensions` with a signed offer for each requirement. `untilMs`: Unix ms. */
async function signedOffer(
  { signer, did }: OfferKey,
  required: PaymentRequired,
  untilMs: number,
): Promise<Extensions> {
  const extension = createOfferReceiptExtension(issuer(signer.current(), did, untilMs));
  const { accepts: requirements, resource: resourceInfo } = required;
  const context = { requirements, resourceInfo, paymentRequiredResponse: required };
  const offered = await extension.enrichPaymentRequiredResponse?.({}, context);
  return member(isObject(offered) ? { info: offered.info, schema: { type: 'object' } } : undefined);
}

/**
 * The member of `extensions` with the signed receipt of delivery. The same settlement gives the same text, also after a key
 * rotation; empty if the key of that time is no longer in the key file, since no other key was valid then.
 */
async function signedReceipt(
  { pricing, offerKey }: { readonly pricing: Pricing; readonly offerKey: OfferKey },
  { route, payment, completedAt }: Settlement,
): Promise<Extensions> {
  const issuedAtMs = Date.parse(completedAt);
  const key = offerKey.signer.former(issuedAtMs);
  if (key === null) return {};
  const { requirements } = pricing.terms;
  const { payer, transaction } = payment;
  const network = payment.network as Terms['network'];
  const extension = createOfferReceiptExtension(issuer(key, offerKey.did, issuedAtMs));
  return member(
    await extension.enrichSettlementResponse?.(
      { includeTxHash: true },
      {
        paymentPayload: { x402Version: 2, accepted: requirements, payload: {} },
        requirements,
        declaredExtensions: {},
        phase: 'before-handler',
        result: { success: true, payer, network, transaction: transaction ?? '' },
        transportContext: {
          request: { adapter: { getUrl: () => pricing.routes[route].required.resource.url } },
        },
      },
    ),
  );
}

const member = (value: unknown): Extensions => (value === undefined ? {} : { [OFFER_RECEIPT]: value });

const VERSION = 1;

/** `atMs`: the end of an offer, or the time of a receipt. The package's issuer is not used: it reads the system clock. */
function issuer(key: SigningKey, did: string, atMs: number): OfferReceiptIssuer {
  const kid = didKeyId(did, key.keyId);
  const seconds = Math.floor(atMs / 1000);
  const jws: JWSSigner = {
    kid,
    format: 'jws',
    algorithm: 'EdDSA',
    sign: async (bytes) => toBase64url(await key.sign(bytes)),
  };
  return {
    kid,
    format: 'jws',
    async issueOffer(resourceUrl, { acceptIndex, scheme, network, asset, payTo, amount }) {
      const terms = { scheme, network, asset, payTo, amount, validUntil: seconds };
      const signature = await createJWS({ version: VERSION, resourceUrl, ...terms }, jws);
      return { format: 'jws', acceptIndex, signature };
    },
    async issueReceipt(resourceUrl, payer, network, transaction) {
      const paid = { network, resourceUrl, payer, issuedAt: seconds };
      const named = transaction === undefined ? {} : { transaction };
      return { format: 'jws', signature: await createJWS({ version: VERSION, ...paid, ...named }, jws) };
    },
  };
}
