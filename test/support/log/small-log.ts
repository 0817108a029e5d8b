// A transparency log in memory: leaves in, signed checkpoints and proof files out, at any size that it ever had.
import { concatBytes, fromBase64url } from '#src/domain/encoding.ts';
import { checkpointText } from '#src/domain/transparency/checkpoint.ts';
import type { Hash } from '#src/domain/transparency/merkle.ts';
import { signNote } from '#src/domain/transparency/note.ts';
import {
  consistencyProof,
  inclusionProof,
  type ReadTile,
  TILE_WIDTH,
  treeReader,
} from '#src/domain/transparency/tiles.ts';
import { tlogProofText } from '#src/domain/transparency/tlog-proof.ts';
import { appendLeaf, EMPTY_TREE, type Tree } from '#src/domain/transparency/tree.ts';
import { type TestKey, testKey } from '#test/support/given/primitives.ts';

export const ORIGIN = 'relay.example/receipts';

export type SmallLog = {
  readonly key: TestKey;
  readonly readTile: ReadTile;
  tree(): Tree;
  append(data: Uint8Array): Promise<void>;
  /** As the log stood at `size`; now where none is given. */
  checkpoint(size?: number): Promise<string>;
  root(size?: number): Promise<Hash>;
  /** A proof file for the leaf at `index`. */
  proof(index: number, size?: number): Promise<string>;
  consistency(from: number, to: number): Promise<Hash[]>;
};

export function smallLog(origin = ORIGIN, key = testKey({ purpose: 'checkpoint' })): SmallLog {
  let tree = EMPTY_TREE;
  const tiles = new Map<string, Hash[]>();
  const readTile: ReadTile = async (level, n) => {
    const tile = tiles.get(`${level}/${n}`);
    return tile === undefined ? null : concatBytes(...tile);
  };
  const reader = () => treeReader(readTile);
  const root: SmallLog['root'] = (size = tree.size) => reader().root(0, size);
  const checkpoint: SmallLog['checkpoint'] = async (size = tree.size) => {
    const publicKey = fromBase64url(key.x) ?? new Uint8Array(0);
    const text = checkpointText({ origin, size, root: await root(size) });
    return signNote(text, { name: origin, publicKey }, key.sign);
  };
  return {
    key,
    readTile,
    tree: () => tree,
    async append(data) {
      const grown = appendLeaf(tree, data);
      tree = grown.tree;
      for (const { level, index, hash } of grown.entries) {
        const name = `${level}/${Math.floor(index / TILE_WIDTH)}`;
        tiles.set(name, [...(tiles.get(name) ?? []), hash]);
      }
    },
    root,
    checkpoint,
    async proof(index, size = tree.size) {
      const path = await inclusionProof(reader(), index, size);
      return tlogProofText({ index, path, checkpoint: await checkpoint(size) });
    },
    consistency: (from, to) => consistencyProof(reader(), from, to),
  };
}
