// Payments: who pays, whether it is good, and the one call that moves money. The order of calls is the use case's.
import type { Mode } from '../domain/event-fields.ts';
import type { Refused } from '../domain/refusal.ts';

/** A payment as presented with one request, its form and signature checked without any network call. */
export type PresentedPayment = {
  /** SHA-256 of lower-case `network:asset:from:nonce`, hex: the payment's identity, whatever header carried it. */
  readonly hash: string;
  readonly scheme: string;
  readonly network: string;
  readonly asset: string;
  /** Atomic units, decimal. */
  readonly amount: string;
  readonly payTo: string;
  readonly payer: string;
  readonly nonce: string;
  /** Unix seconds, decimal. */
  readonly validBefore: string;
  readonly payloadHash: string;
  readonly x402Version: 1 | 2;
  /** The adapter's own: what verify and settle need. In memory only, never stored, never logged. */
  readonly carried: unknown;
};

export type Verified =
  | { readonly outcome: 'valid' }
  /** Codes of the protocol. A later copy of a settled payment fails too: the stream is read again before a 402. */
  | { readonly outcome: 'invalid'; readonly reason: string }
  | { readonly outcome: 'unavailable' };

export type Settled =
  | { readonly outcome: 'settled'; readonly transaction: string | null }
  /** The complete answer says that money did not and will not move. */
  | { readonly outcome: 'rejected'; readonly reason: string }
  /** The complete answer says that the nonce is spent. */
  | { readonly outcome: 'nonce_used' }
  /** Everything else: the money may have moved. `cause`: a code. */
  | { readonly outcome: 'unknown'; readonly cause: string };

/** What the chain says of an authorization; `unavailable` where nobody can be asked. */
export type ChainState =
  | { readonly outcome: 'paid'; readonly transaction: string | null }
  | { readonly outcome: 'cancelled' }
  | { readonly outcome: 'unused'; readonly chainTimeSeconds: number }
  | { readonly outcome: 'unavailable' };

export interface Payments {
  readonly mode: Mode;
  /** The payment's time window, judged for new payments only: null where it is good. */
  timeWindow(payment: PresentedPayment, nowMs: number): Refused<'payment_required'> | null;
  /** Asks the facilitator. Bounded in time, never throws. */
  verify(payment: PresentedPayment): Promise<Verified>;
  /** Moves the money. Called after its claim is durable, once per claim. Bounded in time, never throws. */
  settle(payment: PresentedPayment): Promise<Settled>;
  /** Asks the chain, where a way to it is configured. Bounded in time, never throws. */
  lookUp(payment: PresentedPayment): Promise<ChainState>;
}
