// Payments: who pays, whether it is good, and the one call that moves money. The order of calls is the use case's.
import type { Mode } from '../domain/event-fields.ts';
import type { ChainFinding, SettleAnswer } from '../domain/payment/state.ts';
import type { Refused } from '../domain/refusal.ts';

/** A payment as presented with one request: its form, network, asset and signature checked without any network call. */
export type PresentedPayment = {
  /** SHA-256 of lower-case `network:asset:from:nonce`, hex: the payment's identity, whatever header carried it. */
  readonly hash: string;
  readonly scheme: string;
  readonly network: string;
  readonly asset: string;
  /** What is signed, whatever we ask now: atomic units, decimal. */
  readonly amount: string;
  /** As signed; lower case. */
  readonly payTo: string;
  /** Wallet address, lower case: one spelling, since it names claims. */
  readonly payer: string;
  /**
   * `recovered`: the payer's key made the signature. `contract`: a signature that only a contract wallet could judge
   * (not 65 bytes); who sent it is known once the facilitator has verified it.
   */
  readonly signer: 'recovered' | 'contract';
  readonly nonce: string;
  /** Unix seconds, decimal. */
  readonly validBefore: string;
  /** SHA-256 over the signed payload, signature included, hex: all that is ever stored of the signature. */
  readonly payloadHash: string;
  readonly x402Version: 1 | 2;
  /** The adapter's own: what verify and settle need. In memory only, never stored, never logged. */
  readonly carried: unknown;
};

/** What the chain knows of an authorization; network and asset are the configured ones. */
export type Authorization = Pick<PresentedPayment, 'payer' | 'nonce' | 'validBefore' | 'payTo' | 'amount'>;

export type Verified =
  | { readonly outcome: 'valid' }
  /** Codes of the protocol. A later copy of a settled payment fails too: the stream is read again before a 402. */
  | { readonly outcome: 'invalid'; readonly reason: string }
  | { readonly outcome: 'unavailable' };

export interface Payments {
  readonly mode: Mode;
  /**
   * Whether it pays what we ask now, to whom we ask now: judged where its own stream does not know it, since price and
   * payee may have changed after it was accepted. null: it does.
   */
  judgeTerms(payment: PresentedPayment): Refused<'payment_required'> | null;
  /** Its terms, then its time window: judged for new payments only. null: both are good. */
  judgeNew(payment: PresentedPayment, nowMs: number): Refused<'payment_required'> | null;
  /** Asks the facilitator. Bounded in time, never throws. */
  verify(payment: PresentedPayment): Promise<Verified>;
  /** Moves the money. Called after its claim is durable, once per claim. Bounded in time, never throws. */
  settle(payment: PresentedPayment): Promise<SettleAnswer>;
  /** Asks the chain, if X402_RPC_URL is set. It needs no signature. Bounded in time, never throws. */
  lookUp(authorization: Authorization): Promise<ChainFinding>;
  /** Whether the facilitator answers and knows our kind of payment; null where none is needed. Bounded, never throws. */
  health(): Promise<{ readonly ok: boolean } | null>;
}
