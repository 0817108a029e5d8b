// The Merkle tree of RFC 6962 §2.1: its two hashes, and the verification of both kinds of proof.
import { concatBytes, sha256 } from '#src/domain/encoding.ts';

/** 32 bytes. */
export type Hash = Uint8Array;

const LEAF = Uint8Array.of(0);
const NODE = Uint8Array.of(1);

/** RFC 6962 §2.1: SHA-256(0x00 ‖ data). */
export const leafHash = (data: Uint8Array): Hash => sha256(concatBytes(LEAF, data));

/** RFC 6962 §2.1: SHA-256(0x01 ‖ left ‖ right). */
export const nodeHash = (left: Hash, right: Hash): Hash => sha256(concatBytes(NODE, left, right));

/** The root of a tree without leaves: SHA-256 of nothing. */
export const emptyRoot = (): Hash => sha256(new Uint8Array(0));

export function sameHash(a: Hash, b: Hash): boolean {
  return a.length === b.length && a.every((byte, at) => byte === b[at]);
}

/** A count of leaves or an index that a double represents exactly. */
export const isCount = (value: number): boolean => Number.isSafeInteger(value) && value >= 0;

const half = (n: number): number => Math.floor(n / 2);

/**
 * RFC 9162 §2.1.3.2 (the same tree as RFC 6962): whether the leaf is at `index` of the tree of `size` leaves with
 * this root. `proof`: from the leaf's sibling upwards.
 */
export function verifyInclusion(claim: {
  readonly index: number;
  readonly size: number;
  readonly leaf: Hash;
  readonly proof: readonly Hash[];
  readonly root: Hash;
}): boolean {
  const { index, size, leaf, proof, root } = claim;
  if (!isCount(index) || !isCount(size) || index >= size) return false;
  let at = index;
  let last = size - 1;
  let hash = leaf;
  for (const sibling of proof) {
    if (last === 0) return false;
    if (at % 2 === 1 || at === last) {
      hash = nodeHash(sibling, hash);
      while (at % 2 === 0 && at !== 0) [at, last] = [half(at), half(last)];
    } else hash = nodeHash(hash, sibling);
    [at, last] = [half(at), half(last)];
  }
  return last === 0 && sameHash(hash, root);
}

/** RFC 9162 §2.1.4.2: whether the tree of `from` leaves is a prefix of the tree of `to` leaves. */
export function verifyConsistencyProof(claim: {
  readonly from: number;
  readonly to: number;
  readonly fromRoot: Hash;
  readonly toRoot: Hash;
  readonly proof: readonly Hash[];
}): boolean {
  const { from, to, fromRoot, toRoot, proof } = claim;
  if (!isCount(from) || !isCount(to) || from > to) return false;
  if (from === to) return proof.length === 0 && sameHash(fromRoot, toRoot);
  // The empty tree is a prefix of every tree.
  if (from === 0) return proof.length === 0 && sameHash(fromRoot, emptyRoot());
  let at = from - 1;
  let last = to - 1;
  while (at % 2 === 1) [at, last] = [half(at), half(last)];
  // If `from` is a power of two, its root is a node of the larger tree and is left out of the proof.
  const path = at === 0 ? [fromRoot, ...proof] : [...proof];
  const first = path.shift();
  if (first === undefined) return false;
  let [smaller, larger] = [first, first];
  for (const sibling of path) {
    if (last === 0) return false;
    if (at % 2 === 1 || at === last) {
      smaller = nodeHash(sibling, smaller);
      larger = nodeHash(sibling, larger);
      while (at % 2 === 0 && at !== 0) [at, last] = [half(at), half(last)];
    } else larger = nodeHash(larger, sibling);
    [at, last] = [half(at), half(last)];
  }
  return last === 0 && sameHash(smaller, fromRoot) && sameHash(larger, toRoot);
}
