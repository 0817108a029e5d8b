// A witness of transparency logs, which somebody else operates (C2SP tlog-witness): it remembers the largest checkpoint that
// it has seen of each log, and cosigns another one only if that is proven to extend it.

import type { Hash } from '#src/domain/transparency/merkle.ts';
import type { AbortSignalLike } from './event-log.ts';

/**
 * Nothing that a witness answers is trusted: the caller verifies cosignatures, and decides what a size means. An
 * implementation reads at most `WITNESS_LIMITS.answerBytes`, follows no redirect, repeats nothing, and keeps connections open
 * between calls.
 */
export interface RemoteWitness {
  /** Resolves within `WITNESS_LIMITS.timeoutMs`, or as soon as `ending` aborts. Rejects only for a defect of this program. */
  addCheckpoint(request: AddCheckpointRequest, ending?: AbortSignalLike): Promise<WitnessAnswer>;
  /** The checkpoint of the log that the witness publishes (its monitoring prefix is its submission prefix); limits as above. */
  checkpoint(origin: string, ending?: AbortSignalLike): Promise<PublishedCheckpoint>;
}

export const WITNESS_LIMITS = {
  /** From the DNS look-up to the last byte. */
  timeoutMs: 5000,
  answerBytes: 16 * 1024,
} as const;

export type AddCheckpointRequest = {
  /** The size that the witness has seen last; 0: none, or not known. */
  readonly old: number;
  /** From `old` to the checkpoint (RFC 6962 §2.1.2); empty if `old` is 0 or the checkpoint's size. */
  readonly proof: readonly Hash[];
  /** A signed note. */
  readonly checkpoint: string;
};

export type WitnessAnswer =
  /** 200: signature lines, each with its end; not parsed. */
  | { readonly kind: 'cosigned'; readonly lines: string }
  /** 409: the size of the last checkpoint that the witness has cosigned. */
  | { readonly kind: 'conflict'; readonly size: number }
  /** Another status: 404 unknown origin, 403 no trusted signature, 422 the proof does not hold, 400, 429, 5xx. */
  | { readonly kind: 'refused'; readonly status: number }
  | { readonly kind: 'failed'; readonly why: WitnessFailure };

export type PublishedCheckpoint =
  /** 200: a signed note; not parsed. */
  | { readonly kind: 'published'; readonly note: string }
  /** Another status: 404 it has cosigned none of this log, or publishes none here. */
  | { readonly kind: 'refused'; readonly status: number }
  | { readonly kind: 'failed'; readonly why: WitnessFailure };

/** `malformed`: 409 without a size, or a text that is not UTF-8. `stopped`: `ending` aborted. */
export type WitnessFailure =
  | 'timeout'
  | 'unreachable'
  | 'cut_off'
  | 'oversized'
  | 'redirected'
  | 'malformed'
  | 'stopped';
