// Payments: verify, settle and look up one payment authorization. The use case decides the order of the calls.
import type { FacilitatorHealth } from '#src/domain/monitoring/health.ts';
import type { Mode } from '../domain/event-fields.ts';
import type { SettleAnswer } from '../domain/payment/settlement.ts';
import type { ChainFinding } from '../domain/payment/state.ts';
import type { Allowed, Refused } from '../domain/refusal.ts';
import type { AbortSignalLike } from './event-log.ts';

/** A payment as presented with one request: its form, network, asset and signature checked without any network call. */
export type PresentedPayment = {
  /** SHA-256 of lower-case `network:asset:from:nonce`, hex: the payment's identity, whatever header carried it. */
  readonly hash: string;
  readonly scheme: string;
  readonly network: string;
  readonly asset: string;
  /** As signed, also if the current price differs: atomic units, decimal. */
  readonly amount: string;
  /** As signed; lower case. */
  readonly payTo: string;
  /** Wallet address, lower case: its one spelling is part of stream names. */
  readonly payer: string;
  /**
   * `recovered`: the signature is by the payer's key. `contract`: it is not, so only a contract wallet can verify it; the
   * payer is proven once the facilitator has verified the payment.
   */
  readonly signer: 'recovered' | 'contract';
  readonly nonce: string;
  /** Unix seconds, decimal. */
  readonly validBefore: string;
  /** SHA-256 over the signed payload, signature included, hex. The signature itself is not stored. */
  readonly payloadHash: string;
  readonly x402Version: 1 | 2;
  /** The client's id (extension payment-identifier), 16 to 128 characters; not signed. null: none. */
  readonly identifier: string | null;
  /** Private to the adapter: the input of verify and settle. In memory only, never stored, never logged. */
  readonly carried: unknown;
};

/** Identifies an authorization on the chain. */
export type Authorization = Pick<
  PresentedPayment,
  'network' | 'asset' | 'payer' | 'nonce' | 'validBefore' | 'payTo' | 'amount'
> & {
  /** RFC 3339: nothing was settled before. Missing: the authorization lives no longer than that of a call. */
  readonly reservedAt?: string;
};

export type Verified =
  | { readonly outcome: 'valid' }
  /** Codes of the protocol. A copy of a settled payment is invalid too: the stream is read again before a 402. */
  | { readonly outcome: 'invalid'; readonly reason: string }
  | { readonly outcome: 'unavailable' };

/** Unix ms; `untilMs`: until when the run may start. */
export type RunWindow = { readonly nowMs: number; readonly dueMs: number; readonly untilMs: number };
/** `node`: no facilitator verifies it before it is valid, and its payer is a contract. `key`: the payer's own key has signed it. */
export type TicketVerdict = { readonly kind: 'ticket'; readonly verifiedBy: 'facilitator' | 'node' | 'key' };

export interface Payments {
  readonly mode: Mode;
  /**
   * Compares amount and payee with the current terms. Only for a payment without a stream, since price and payee may have
   * changed after it was accepted.
   */
  validateTerms(payment: PresentedPayment): Allowed | Refused<'payment_required'>;
  /** Validates the terms, then the time window, of a new payment. */
  validateNew(payment: PresentedPayment, nowMs: number): Allowed | Refused<'payment_required'>;
  /**
   * Validates the terms of a new payment for a run that is due later, and that its time window covers the run from
   * `dueMs` on.
   */
  validateTicket(payment: PresentedPayment, run: RunWindow): TicketVerdict | Refused<'payment_required'>;
  /** Calls the facilitator. Bounded in time; throws only for a defect of this program, and nothing was charged then. */
  verify(payment: PresentedPayment): Promise<Verified>;
  /** Whether a contract wallet accepts its signature, which the node is asked. Bounded in time, never throws. */
  verifySignature(payment: PresentedPayment): Promise<Verified>;
  /** Moves the money. Called once per claim, after the claim is durable. Bounded in time, never throws. */
  settle(payment: PresentedPayment): Promise<SettleAnswer>;
  /**
   * Queries the chain at X402_RPC_URL. Needs no signature. `transaction`: a hash to look at first, null if none is known.
   * Takes at most 8 s, and ends as `unavailable` when `signal` aborts. Never throws.
   */
  lookUp(
    authorization: Authorization,
    options?: { readonly transaction?: string | null; readonly signal?: AbortSignalLike },
  ): Promise<ChainFinding>;
  /** What the payer has of the asset, atomic units; null: the node gave no usable answer. Takes at most 8 s, never throws. */
  balanceOf(authorization: Pick<Authorization, 'network' | 'asset' | 'payer'>): Promise<bigint | null>;
  /** Whether paid calls can be accepted now; null if no facilitator is needed. Bounded in time, never throws. */
  health(): Promise<FacilitatorHealth | null>;
}
