// Payments on the wire (x402, HTTP transport, versions 1 and 2): challenge, payment header, payment response. No network
// call: facilitator and chain are in payments.ts.

import type { AskedFor } from '#src/domain/payment/price.ts';
import type { JsonObject } from '../domain/canonical-json.ts';
import type { PaymentFacts, Route } from '../domain/event-fields.ts';
import type { Refused } from '../domain/refusal.ts';
import type { PresentedPayment } from './payments.ts';

/** Returns a header of the caller's request, its name in any case; null if it is absent. */
export type ReadHeader = (name: string) => string | null;

export type WireHeaders = Readonly<Record<string, string>>;

/**
 * `reason`: a code of the protocol or of this service. `message`: why the payment is refused, for people; null: none came. `hints`: the schema's errors in
 * the request's body.
 */
export type ChallengeRequest = {
  readonly route: Route;
  readonly reason: string;
  readonly message: string | null;
  readonly hints: readonly { readonly path: string; readonly message: string }[];
  /** Present: a run of a schedule is paid for, which is settled when it is due. `route` is not used then. */
  readonly ticket?: TicketOffer;
};

/** `path`: of the resource, begins with a slash. `description`: at most 450 characters. Schema and examples: of its body. */
export type TicketOffer = {
  readonly path: string;
  readonly description: string;
  /** How long an authorization that is signed now has to live. */
  readonly maxTimeoutSeconds: number;
  /** The run that is paid for: the extension `scheduled-run` of the 402. null: not known yet. */
  readonly run: { readonly n: number; readonly dueAt: string } | null;
  readonly inputSchema: { readonly [name: string]: unknown };
  readonly inputExample: { readonly [name: string]: unknown };
  readonly outputExample: { readonly [name: string]: unknown };
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
  /** RFC 3339. It is signed, so that a replay is equal to the first answer. */
  readonly completedAt: string;
};

export interface PaymentProtocol {
  readonly askedFor: Readonly<Record<Route, AskedFor>>;
  /** What a run of a schedule asks for. */
  askedForRun(ticket: TicketOffer): AskedFor;
  /** Whether the request has a payment header, readable or not. */
  isPresented(header: ReadHeader): boolean;
  /** A payment's signed authorization, normalised: what has to be kept to settle it later. Under 1 kB for a signature by a key. */
  write(payment: PresentedPayment): string;
  /** Reads what `write` has returned, with the checks of `read`. */
  reopen(text: string): Promise<PresentedPayment | Refused<'payment_required' | 'invalid_request'>>;
  /**
   * The payment of a request: decoded, its asset and network compared with ours, the signer of a 65-byte signature
   * recovered. Amount and payee are returned as signed. They are compared with the current terms for new payments only
   * (payments.ts), so that a known payment is served on the terms under which it was accepted. A payment on an earlier
   * network or asset is refused here, known or not, because its signature has another EIP-712 domain. The refusal's
   * `details.reason` is the code. `invalid_request`: its payment identifier is not valid. `client`: the client
   * address as it is counted, for which a node is asked so many questions. Never throws.
   */
  read(
    header: ReadHeader,
    client: string,
  ): Promise<PresentedPayment | Refused<'payment_required' | 'invalid_request'>>;
  challenge(request: ChallengeRequest): Promise<Challenge>;
  /** `PAYMENT-RESPONSE`, and `X-PAYMENT-RESPONSE` for a payer of version 1. */
  settled(settlement: Settlement): Promise<WireHeaders>;
}
