// The chain, as the comparison of the books reads it: blocks, and transfers of one asset. Each call is bounded in time, ends
// when `signal` aborts, and throws `ChainUnavailable` if it has no usable answer.
import type { ChainHealth } from '#src/domain/monitoring/health.ts';
import type { ChainBlock, ChainTransfer } from '../domain/payment/reconciliation.ts';
import type { Transfer } from '../domain/payment/refund.ts';
import type { ChainFinding } from '../domain/payment/state.ts';
import type { AbortSignalLike } from './event-log.ts';
import type { Authorization } from './payments.ts';

export type ScanRequest = {
  /** Lower case. */
  readonly payee: string;
  /** First and last block. */
  readonly from: number;
  readonly to: number;
  /** Ends after the block with which so many transfers are found. */
  readonly maxTransfers: number;
  /** Payers whose used and cancelled authorizations are returned too. Lower case. */
  readonly payers: readonly string[];
};

export type Scan = {
  /** The last block that was read, and its hash by the node that answered with the logs. */
  readonly to: number;
  readonly hash: string;
  /** In the order of the chain. Without those that move nothing: of the amount 0, or from the payee. */
  readonly transfers: readonly ChainTransfer[];
  /** What the payee sent to others in these blocks. */
  readonly sent: readonly { readonly block: number; readonly amount: bigint }[];
  /** Authorizations of `payers` that were used, for whatever payee, or cancelled. */
  readonly ended: readonly { readonly payer: string; readonly nonce: string }[];
};

/** `state_gone`: the node keeps no state of a block that is this old. */
export type ScannedBalance =
  | { readonly kind: 'known'; readonly amount: bigint }
  | { readonly kind: 'state_gone' };

export interface ChainScan {
  /** CAIP-2, and the contract in lower case: what is scanned. */
  readonly network: string;
  readonly asset: string;
  /** The newest block that is compared: the node's `safe` one, or the configured number of blocks before its last. */
  safeBlock(signal?: AbortSignalLike): Promise<ChainBlock>;
  /** null: the chain has no block of this number. */
  block(number: number, signal?: AbortSignalLike): Promise<ChainBlock | null>;
  /** A block before this time (Unix seconds), as late as is found with few calls; 0 if there is none. */
  blockBefore(time: number, signal?: AbortSignalLike): Promise<number>;
  /** Number of the block that contains the transaction; null: none does. */
  blockOf(transaction: string, signal?: AbortSignalLike): Promise<number | null>;
  scan(request: ScanRequest, signal?: AbortSignalLike): Promise<Scan>;
  /** What the payee has after this block. `payee`: lower case. */
  balanceOf(payee: string, block: number, signal?: AbortSignalLike): Promise<ScannedBalance>;
  /** Whether the node answers what a comparison needs. Bounded in time, cached for 10 s, never throws. */
  health(): Promise<ChainHealth>;
}

/** `code` is for the log: `unreachable`, `other_chain`, `no_safe_block`, `timeout`, `behind` (it lacks the block), … */
export class ChainUnavailable extends Error {
  readonly code: string;
  constructor(code: string) {
    super(`the chain's node gave no usable answer: ${code}`);
    this.name = 'ChainUnavailable';
    this.code = code;
  }
}

/** The chain as an audit reads it: of whatever accounts and transactions the record names. Each call is bounded in time. */
export interface ChainAudit {
  /** CAIP-2, of the node. Throws `ChainUnavailable`. */
  network(): Promise<string>;
  /** `asset`: lower case. Its calls throw `ChainUnavailable`. */
  scanOf(asset: string): Pick<ChainScan, 'block' | 'scan'>;
  /** null: the chain has no such transaction, or it failed. Throws `ChainUnavailable`. */
  transfersIn(transaction: string): Promise<readonly Transfer[] | null>;
  /** `transaction`: that may contain its transfer; null: unknown. Throws `ChainUnavailable`. */
  lookUp(payment: Authorization, transaction: string | null): Promise<ChainFinding>;
}
