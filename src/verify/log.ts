// The transparency log, for a reader who keeps checkpoints: one checkpoint, and whether a newer one continues it.
import { toBase64 } from '#src/domain/encoding.ts';
import { parsedJson } from '../domain/canonical-json.ts';
import {
  type Checkpoint,
  parseCheckpoint,
  verifyCheckpoint as verifyNote,
} from '../domain/transparency/checkpoint.ts';
import { type ConsistencyProblem, verifyGrowth } from '../domain/transparency/growth.ts';
import { type Given, keysOf, noteText } from './given.ts';
import { webPrimitives } from './primitives.ts';

/** A checkpoint whose signature verifies. */
export type VerifiedCheckpoint = {
  /** The log's name. */
  readonly origin: string;
  /** Leaves in the log when it was signed. */
  readonly size: number;
  /** Root of the tree of that size: base64 of 32 bytes. */
  readonly root: string;
  /** The checkpoint key that signed. */
  readonly keyId: string;
};

export type CheckpointReport =
  | ({ readonly ok: true } & VerifiedCheckpoint)
  | { readonly ok: false; readonly problem: 'malformed' | 'signature' };

/**
 * Verifies a checkpoint (C2SP tlog-checkpoint), such as the text of `/log/checkpoint` or the `checkpoint` of an execution
 * response. `problem`: `malformed` (no checkpoint), `signature` (not signed by a checkpoint key of the key set that is not
 * compromised). Throws as `verifyReceipt` does.
 */
export async function verifyCheckpoint(
  checkpoint: string,
  options: { readonly keys: Given },
): Promise<CheckpointReport> {
  const keys = keysOf(options);
  const note = noteText(checkpoint);
  if (parseCheckpoint(note) === null) return { ok: false, problem: 'malformed' };
  const verified = await verifyNote(note, keys, webPrimitives);
  return verified === null ? { ok: false, problem: 'signature' } : { ok: true, ...shown(verified) };
}

export type ConsistencyReport =
  | { readonly ok: true; readonly older: VerifiedCheckpoint; readonly newer: VerifiedCheckpoint }
  | { readonly ok: false; readonly problem: ConsistencyProblem };

/**
 * Verifies that the log of the newer checkpoint contains everything that the older one covers, unchanged and in the same
 * order (RFC 6962 §2.1.2). `proof`: the answer of `/log/consistency?from=&to=` with both sizes, as text or parsed; not
 * needed if the sizes are equal or the older one is 0. Throws as `verifyReceipt` does.
 */
export async function verifyConsistency(
  claim: { readonly older: string; readonly newer: string; readonly proof?: Given | null },
  options: { readonly keys: Given },
): Promise<ConsistencyReport> {
  const keys = keysOf(options);
  const { older, newer, proof = null } = claim;
  const answer = typeof proof === 'string' ? (parsedJson(proof) ?? {}) : proof;
  const given = { older: noteText(older), newer: noteText(newer), proof: answer };
  const verdict = await verifyGrowth(given, keys, webPrimitives);
  return verdict.ok ? { ok: true, older: shown(verdict.older), newer: shown(verdict.newer) } : verdict;
}

const shown = ({ origin, size, root, keyId }: Checkpoint): VerifiedCheckpoint => ({
  origin,
  size,
  root: toBase64(root),
  keyId,
});
