// The tree of an audit: grown leaf by leaf beside the reading, and asked for the root of any size it has had.
import { fromBase64, toBase64 } from '#src/domain/encoding.ts';
import type { Hash } from '#src/domain/transparency/merkle.ts';
import { HASH_BYTES, TILE_WIDTH, treeReader } from '#src/domain/transparency/tiles.ts';
import { appendLeaf, EMPTY_TREE, rootOf, type Tree } from '#src/domain/transparency/tree.ts';
import type { AuditScratch } from '#src/ports/audit-scratch.ts';

export type HashTree = {
  append(data: Uint8Array): void;
  /** Of the first `size` leaves; null where there are not as many. */
  rootAt(size: number): Promise<Hash | null>;
  root(): Hash;
  readonly size: number;
};

export function hashTree(scratch: AuditScratch): HashTree {
  /** Hashes by `<level>/<index>`, base64. */
  const hashes = scratch.table<string>('hash');
  let tree: Tree = EMPTY_TREE;

  async function readTile(level: number, n: number): Promise<Uint8Array | null> {
    const bytes = new Uint8Array(TILE_WIDTH * HASH_BYTES);
    let width = 0;
    for (; width < TILE_WIDTH; width++) {
      const hash = fromBase64(hashes.get(`${level}/${n * TILE_WIDTH + width}`) ?? '');
      if (hash?.length !== HASH_BYTES) break;
      bytes.set(hash, width * HASH_BYTES);
    }
    return width === 0 ? null : bytes.subarray(0, width * HASH_BYTES);
  }

  return {
    append(data) {
      const appended = appendLeaf(tree, data);
      for (const { level, index, hash } of appended.entries) hashes.put(`${level}/${index}`, toBase64(hash));
      tree = appended.tree;
    },
    async rootAt(size) {
      if (size > tree.size) return null;
      return size === tree.size ? rootOf(tree) : treeReader(readTile).root(0, size);
    },
    root: () => rootOf(tree),
    get size() {
      return tree.size;
    },
  };
}
