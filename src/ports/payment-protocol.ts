// Payments on the wire (x402, http transport, versions 1 and 2): what is asked for, what is presented, what is answered.
// No network call in any of it: the facilitator's and the chain's part is payments.ts.

import type { AskedFor } from '#src/domain/payment/requirements.ts';
import type { JsonObject } from '../domain/canonical-json.ts';
import type { PaymentFacts, Route } from '../domain/event-fields.ts';
import type { Refused } from '../domain/refusal.ts';
import type { PresentedPayment } from './payments.ts';

/** A header of the caller's request by its name in any case; null where it is absent. */
export type ReadHeader = (name: string) => string | null;

/** Of an answer. */
export type WireHeaders = Readonly<Record<string, string>>;

/** `reason`: a code of the protocol or ours. `hints`: what the schema has against the request's body. */
export type ChallengeAsk = {
  readonly route: Route;
  readonly reason: string;
  readonly hints: readonly { readonly path: string; readonly message: string }[];
};

/** A 402 that clients of both versions can pay: version 2 by its header, version 1 by its body. */
export type Challenge = { readonly headers: WireHeaders; readonly body: JsonObject };

export type Settlement = {
  readonly route: Route;
  readonly payment: PaymentFacts;
  /** The version in which this very request presented its payment. */
  readonly x402Version: 1 | 2;
  /** The target said 2xx: then version 2 carries the signed payment receipt (extension offer-receipt). */
  readonly delivered: boolean;
  /** RFC 3339; part of what is signed, so that a replay says the same as the first answer. */
  readonly completedAt: string;
};

export interface PaymentProtocol {
  readonly askedFor: Readonly<Record<Route, AskedFor>>;
  /** A payment header is there, readable or not. */
  isPresented(header: ReadHeader): boolean;
  /**
   * The payment of a request: decoded, its asset and network compared with ours, a 65-byte signature recovered. What it
   * pays and to whom is as signed: whether we ask that now is judged for new payments only (payments.ts), so that a known
   * one is served by the terms that it was accepted at. Another network or asset is another domain of signatures: a
   * payment on what we asked before is refused here, known or not. The refusal's `details.reason` is the code. Never
   * throws, whatever the header holds.
   */
  read(header: ReadHeader): Promise<PresentedPayment | Refused<'payment_required'>>;
  challenge(ask: ChallengeAsk): Promise<Challenge>;
  /** `PAYMENT-RESPONSE`, and its twin for a payer of version 1. */
  settled(settlement: Settlement): Promise<WireHeaders>;
}
