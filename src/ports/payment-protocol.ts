// Payments on the wire (x402, HTTP transport, versions 1 and 2): challenge, payment header, payment response. No network
// call: facilitator and chain are in payments.ts.

import type { AskedFor } from '#src/domain/payment/requirements.ts';
import type { JsonObject } from '../domain/canonical-json.ts';
import type { PaymentFacts, Route } from '../domain/event-fields.ts';
import type { Refused } from '../domain/refusal.ts';
import type { PresentedPayment } from './payments.ts';

/** A header of the caller's request by its name in any case; null if it is absent. */
export type ReadHeader = (name: string) => string | null;

/** Response headers. */
export type WireHeaders = Readonly<Record<string, string>>;

/** `reason`: a code of the protocol or ours. `hints`: the schema's errors in the request's body. */
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
  /** The version of this request's payment header. */
  readonly x402Version: 1 | 2;
  /** The target answered 2xx: version 2 then contains the signed payment receipt (extension offer-receipt). */
  readonly delivered: boolean;
  /** RFC 3339; part of what is signed, so that a replay is equal to the first answer. */
  readonly completedAt: string;
};

export interface PaymentProtocol {
  readonly askedFor: Readonly<Record<Route, AskedFor>>;
  /** Whether the request has a payment header, readable or not. */
  isPresented(header: ReadHeader): boolean;
  /**
   * The payment of a request: decoded, its asset and network compared with ours, a 65-byte signature recovered. What it
   * pays and to whom is as signed: whether we require that now is judged for new payments only (payments.ts), so that a
   * known one is served on the terms it was accepted on. Another network or asset is another domain of signatures, so a
   * payment on earlier ones is refused here, known or not. The refusal's `details.reason` is the code. Never throws.
   */
  read(header: ReadHeader): Promise<PresentedPayment | Refused<'payment_required'>>;
  challenge(ask: ChallengeAsk): Promise<Challenge>;
  /** `PAYMENT-RESPONSE`, and `X-PAYMENT-RESPONSE` for a payer of version 1. */
  settled(settlement: Settlement): Promise<WireHeaders>;
}
