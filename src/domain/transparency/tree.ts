// The transparency log's tree: its leaves are every receipt and every event of the signing keys, in the event log's order.
// The growing tree is a compact range: its size and the roots of the complete subtrees along its right edge. Appending a
// leaf and computing the root need nothing else, at any size.

import { sha256, utf8 } from '#src/domain/encoding.ts';
import { canonicalJson, type Json } from '../canonical-json.ts';
import type { DomainEvent } from '../events.ts';
import { emptyRoot, type Hash, leafHash, nodeHash } from './merkle.ts';
import { TILE_HEIGHT } from './tiles.ts';

export type Tree = {
  readonly size: number;
  /** Left to right, the largest first: one for each bit of `size`. */
  readonly edge: readonly Hash[];
};

export const EMPTY_TREE: Tree = { size: 0, edge: [] };

/** A hash of a tile: the `index`-th of its level (C2SP tlog-tiles). */
export type TileEntry = { readonly level: number; readonly index: number; readonly hash: Hash };

/** `data`: leaf data, not hashed. `entries`: its hash, and the root of every tile that it completes. */
export function appendLeaf(
  tree: Tree,
  data: Uint8Array,
): { readonly tree: Tree; readonly entries: readonly TileEntry[] } {
  let hash = leafHash(data);
  const entries: TileEntry[] = [{ level: 0, index: tree.size, hash }];
  const edge = [...tree.edge];
  let height = 0;
  // Like adding one to a binary number: a complete subtree on the left is merged with the one just completed.
  for (let rest = tree.size; rest % 2 === 1; rest = Math.floor(rest / 2)) {
    const left = edge.pop();
    if (left === undefined)
      throw new RangeError('the tree has not as many complete subtrees as its size says');
    hash = nodeHash(left, hash);
    height++;
    if (height % TILE_HEIGHT === 0) {
      const index = Math.floor(rest / 2);
      entries.push({ level: height / TILE_HEIGHT, index, hash });
    }
  }
  edge.push(hash);
  return { tree: { size: tree.size + 1, edge }, entries };
}

/** RFC 6962 §2.1, the Merkle Tree Hash of all leaves. */
export function rootOf(tree: Tree): Hash {
  const [last, ...rest] = [...tree.edge].reverse();
  if (last === undefined) return emptyRoot();
  let root = last;
  for (const left of rest) root = nodeHash(left, root);
  return root;
}

export const isLeaf = ({ type }: DomainEvent): boolean =>
  type === 'ReceiptSigned' || type === 'SigningKeyActivated' || type === 'SigningKeyRetired';

/** 32 bytes; null for an event that is no leaf. */
export function leafData(event: DomainEvent): Uint8Array | null {
  switch (event.type) {
    case 'ReceiptSigned':
      return receiptLeafData(event.data.jws);
    case 'SigningKeyActivated':
    case 'SigningKeyRetired': {
      const { type, data } = event;
      return sha256(utf8(canonicalJson({ type, data: { ...data } as Json })));
    }
    default:
      return null;
  }
}

/** SHA-256 of the compact JWS. */
export const receiptLeafData = (jws: string): Uint8Array => sha256(utf8(jws));
