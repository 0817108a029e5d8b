// A proof file (C2SP tlog-proof): proves that one leaf is in the log; verified offline with the log's key.
import { toBase64 } from '#src/domain/encoding.ts';
import type { KeyRecord, Primitives } from '#src/domain/signing-keys/keys.ts';
import { type Checkpoint, verifySignedCheckpoint } from './checkpoint.ts';
import { type Hash, leafHash, verifyInclusion } from './merkle.ts';
import { hashesIn } from './tiles.ts';

const FORMAT = 'c2sp.org/tlog-proof@v1';
/** Hashes from a leaf to the root: enough for 2^64 leaves. */
const MAX_PATH = 64;

export type TlogProof = {
  readonly index: number;
  /** From the leaf's sibling upwards. */
  readonly path: readonly Hash[];
  /** The signed note, verbatim, with any cosignatures of witnesses. */
  readonly checkpoint: string;
};

export const tlogProofText = ({ index, path, checkpoint }: TlogProof): string =>
  `${[FORMAT, `index ${index}`, ...path.map(toBase64)].join('\n')}\n\n${checkpoint}`;

/** null for anything but a proof of this version. Ignores its `extra` line, which no signature covers. */
export function parseTlogProof(text: string): TlogProof | null {
  const border = text.indexOf('\n\n');
  if (border < 0) return null;
  const [format, ...lines] = text.slice(0, border).split('\n');
  if (lines[0]?.startsWith('extra ')) lines.shift();
  const [, digits] = /^index (0|[1-9]\d*)$/.exec(lines.shift() ?? '') ?? [];
  const path = lines.length > MAX_PATH ? null : hashesIn(lines);
  if (format !== FORMAT || digits === undefined || !Number.isSafeInteger(Number(digits))) return null;
  if (path === null) return null;
  return { index: Number(digits), path, checkpoint: text.slice(border + 2) };
}

export type ProofVerdict =
  | { readonly ok: true; readonly index: number; readonly checkpoint: Checkpoint }
  | { readonly ok: false; readonly problem: ProofProblem };

/**
 * `malformed`: no proof file. `checkpoint`: not signed by a checkpoint key of the key set. `origin`: of another log.
 * `inclusion`: the leaf is not where the proof says.
 */
export type ProofProblem = 'malformed' | 'checkpoint' | 'origin' | 'inclusion';

/** `leafData`: of the logged leaf. `origin`: the required log; null: the log that the keys belong to. */
export async function verifyTlogProof(
  text: string,
  expected: { readonly leafData: Uint8Array; readonly origin: string | null },
  keys: readonly KeyRecord[],
  primitives: Primitives,
): Promise<ProofVerdict> {
  const proof = parseTlogProof(text);
  if (proof === null) return { ok: false, problem: 'malformed' };
  const checkpoint = await verifySignedCheckpoint(proof.checkpoint, keys, primitives);
  if (checkpoint === null) return { ok: false, problem: 'checkpoint' };
  if (expected.origin !== null && checkpoint.origin !== expected.origin)
    return { ok: false, problem: 'origin' };
  const included = isIncluded(proof, expected.leafData, checkpoint);
  return included ? { ok: true, index: proof.index, checkpoint } : { ok: false, problem: 'inclusion' };
}

function isIncluded({ index, path }: TlogProof, data: Uint8Array, { size, root }: Checkpoint): boolean {
  return verifyInclusion({ index, size, leaf: leafHash(data), proof: path, root });
}
