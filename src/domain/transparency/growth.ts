// Whether a newer checkpoint continues an older one, verified offline: both signatures, and the RFC 6962 proof between them.
import { Type } from '@sinclair/typebox';
import { shapeCheck } from '#src/domain/shape-check.ts';
import type { KeyRecord, Primitives } from '#src/domain/signing-keys/keys.ts';
import { type Checkpoint, verifySignedCheckpoint } from './checkpoint.ts';
import { type Hash, sameHash, verifyConsistencyProof } from './merkle.ts';
import { hashesIn } from './tiles.ts';

export type GrowthClaim = {
  /** Signed notes (C2SP tlog-checkpoint). */
  readonly older: string;
  readonly newer: string;
  /** The parsed answer of `/log/consistency?from=&to=`; null: none is there. */
  readonly proof: unknown;
};

export type GrowthVerdict =
  | { readonly ok: true; readonly older: Checkpoint; readonly newer: Checkpoint }
  | { readonly ok: false; readonly problem: ConsistencyProblem };

/**
 * `older`, `newer`: not a checkpoint that is signed by a checkpoint key of the key set. `origin`: of two different logs.
 * `smaller`: the newer checkpoint has fewer leaves. `fork`: both have the same number of leaves and different roots: two
 * signed checkpoints that no honest log has. `missing`: the sizes differ, so a proof is needed. `malformed`: not the
 * answer of `/log/consistency`. `sizes`: a proof between other sizes. `inconsistent`: the proof does not hold.
 */
export type ConsistencyProblem =
  | 'older'
  | 'newer'
  | 'origin'
  | 'smaller'
  | 'fork'
  | 'missing'
  | 'malformed'
  | 'sizes'
  | 'inconsistent';

const isAnswer = shapeCheck(
  Type.Object({ from: Type.Number(), to: Type.Number(), proof: Type.Array(Type.String()) }),
);

/** RFC 9162 §2.1.4.2. The roots are those of the checkpoints; roots in the proof's answer are not used. */
export async function verifyGrowth(
  claim: GrowthClaim,
  keys: readonly KeyRecord[],
  primitives: Primitives,
): Promise<GrowthVerdict> {
  const older = await verifySignedCheckpoint(claim.older, keys, primitives);
  if (older === null) return { ok: false, problem: 'older' };
  const newer = await verifySignedCheckpoint(claim.newer, keys, primitives);
  if (newer === null) return { ok: false, problem: 'newer' };
  const problem = problemBetween(older, newer, claim.proof);
  return problem === null ? { ok: true, older, newer } : { ok: false, problem };
}

function problemBetween(older: Checkpoint, newer: Checkpoint, given: unknown): ConsistencyProblem | null {
  if (older.origin !== newer.origin) return 'origin';
  if (older.size > newer.size) return 'smaller';
  if (older.size === newer.size) return sameHash(older.root, newer.root) ? null : 'fork';
  const proof = older.size === 0 ? [] : readProof(given, older.size, newer.size);
  if (typeof proof === 'string') return proof;
  const claim = { from: older.size, to: newer.size, fromRoot: older.root, toRoot: newer.root, proof };
  return verifyConsistencyProof(claim) ? null : 'inconsistent';
}

function readProof(given: unknown, from: number, to: number): readonly Hash[] | ConsistencyProblem {
  if (given === null) return 'missing';
  if (!isAnswer(given)) return 'malformed';
  if (given.from !== from || given.to !== to) return 'sizes';
  return hashesIn(given.proof) ?? 'malformed';
}
