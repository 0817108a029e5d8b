// What a witness accepts (C2SP tlog-witness, add-checkpoint): only a tree head that is proven to extend the largest one of the
// log that it has cosigned.
import { fromUtf8 } from '#src/domain/encoding.ts';
import { type TreeHead, treeHeadOf } from './checkpoint.ts';
import { emptyRoot, type Hash, isCount, sameHash, verifyConsistencyProof } from './merkle.ts';
import { type Note, parseNote } from './note.ts';
import { HASH_BYTES, hashesIn } from './tiles.ts';

export const WITNESS_SERVER_LIMITS = {
  /** Of the body of one request. */
  bodyBytes: 64 * 1024,
  /** C2SP tlog-witness: a client must not send more. */
  proofLines: 63,
  /** C2SP signed-note: a verifier accepts at least 16. */
  signatures: 64,
  /** Until a body has arrived. */
  bodyMs: 5000,
  /** Of one client: an IPv4 address, or a /64 of IPv6. */
  requestsPerSecond: 20,
  requestsAtOnce: 200,
} as const;

export type Submission = {
  /** The size that the client supposes the witness to have cosigned last. */
  readonly oldSize: number;
  readonly proof: readonly Hash[];
  readonly note: Note;
  readonly head: TreeHead;
};

export type ReadSubmission =
  | { readonly submission: Submission; readonly problem: null }
  | { readonly submission: null; readonly problem: string };

/**
 * The body of add-checkpoint: `old <size>`, the hashes of the consistency proof in base64, an empty line, and a checkpoint; each
 * line with its end. Sizes above 2^53 - 1 are not supported. Verifies nothing.
 */
export function parseSubmission(body: Uint8Array): ReadSubmission {
  const text = fromUtf8(body);
  if (text === null) return malformed('the body is not UTF-8');
  const border = text.indexOf('\n\n');
  if (border < 0) return malformed('the body has no empty line before its checkpoint');
  const [first = '', ...lines] = text.slice(0, border).split('\n');
  const [, digits] = /^old (0|[1-9]\d*)$/.exec(first) ?? [];
  if (digits === undefined || !isCount(Number(digits)))
    return malformed('the first line is not `old <size>` with a decimal size');
  if (lines.length > WITNESS_SERVER_LIMITS.proofLines)
    return malformed(`the proof has more than ${WITNESS_SERVER_LIMITS.proofLines} lines`);
  const proof = hashesIn(lines);
  if (proof === null) return malformed(`a line of the proof is not ${HASH_BYTES} bytes in base64`);
  const note = parseNote(text.slice(border + 2));
  const head = note && treeHeadOf(note);
  if (note === null || head === null) return malformed('there is no checkpoint after the empty line');
  if (note.signatures.length > WITNESS_SERVER_LIMITS.signatures)
    return malformed(`the checkpoint has more than ${WITNESS_SERVER_LIMITS.signatures} signatures`);
  return { submission: { oldSize: Number(digits), proof, note, head }, problem: null };
}

const malformed = (problem: string): ReadSubmission => ({ submission: null, problem });

/** What a witness remembers of a log: the largest tree that it has cosigned. */
export type WitnessedHead = Pick<TreeHead, 'size' | 'root'>;

/**
 * Why a checkpoint is not cosigned. `too_old`: the old size is above the checkpoint's. `conflict`: it is not the size of the
 * last cosigned one, which is `size`. `wrong_empty_root`: it has no leaves, and another root than a tree without leaves.
 * `inconsistent`: the proof does not verify. `forked`: the log has signed two trees of one size, which proves its misbehaviour.
 */
export type SubmissionRefusal =
  | { readonly kind: 'too_old' | 'wrong_empty_root' | 'inconsistent' | 'forked' }
  | { readonly kind: 'conflict'; readonly size: number };

/** null: cosign. `last`: null if no checkpoint of this log was cosigned. The signature of the log was verified before. */
export function judgeSubmission(
  { oldSize, proof, head }: Submission,
  last: WitnessedHead | null,
): SubmissionRefusal | null {
  const { size, root } = last ?? { size: 0, root: emptyRoot() };
  if (oldSize > head.size) return { kind: 'too_old' };
  if (oldSize !== size) return { kind: 'conflict', size };
  if (head.size === 0 && !sameHash(head.root, emptyRoot())) return { kind: 'wrong_empty_root' };
  if (head.size === size && !sameHash(head.root, root)) return { kind: 'forked' };
  const proven = verifyConsistencyProof({
    from: size,
    to: head.size,
    fromRoot: root,
    toRoot: head.root,
    proof,
  });
  return proven ? null : { kind: 'inconsistent' };
}
