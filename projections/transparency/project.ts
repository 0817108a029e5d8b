import { toBase64 } from '#src/domain/encoding.ts';
import type { DomainEvent } from '#src/domain/events.ts';
import { isCount } from '#src/domain/transparency/merkle.ts';
import { TILE_WIDTH, type TileLevel } from '#src/domain/transparency/tiles.ts';
import type { TileEntry, Tree } from '#src/domain/transparency/tree.ts';
import type { RowChange } from '#src/lib/row-change.ts';
import {
  type CheckpointRow,
  HASH_TEXT,
  type LeafRow,
  PART_WIDTH,
  type TileRow,
  type TreeRow,
} from './table.ts';

export type TransparencyChange =
  | RowChange<'transparency_tree', TreeRow>
  | RowChange<'transparency_tiles', TileRow>
  | RowChange<'transparency_leaves', LeafRow>
  | RowChange<'transparency_checkpoint', CheckpointRow>;

/** What an event that is a leaf adds to the tree that stood before it. */
export type GrownLeaf = {
  readonly index: number;
  readonly data: Uint8Array;
  readonly entries: readonly TileEntry[];
  /** The tree with it. */
  readonly tree: Tree;
};

/** `leaf`: found before, of the tree as it stood at this very event; null where the event is none. */
export function projectTransparency(
  event: DomainEvent,
  { leaf }: { readonly leaf: GrownLeaf | null },
): readonly TransparencyChange[] {
  if (event.type === 'CheckpointSigned') {
    const { size, note, signedAt } = event.data;
    return checkpointChange({ id: 'last', size: Number(size), note, signedAt });
  }
  if (event.type === 'CheckpointCosigned') {
    const { size, note, cosignatures, cosignedAt } = event.data;
    const cosigned = note + cosignatures.map(({ line }) => `${line}\n`).join('');
    return checkpointChange({ id: 'cosigned', size: Number(size), note: cosigned, signedAt: cosignedAt });
  }
  if (leaf === null) return [];
  const changes: TransparencyChange[] = [
    { table: 'transparency_tree', key: 'all', apply: () => treeRow(leaf.tree) },
    tileChange('entries', leaf.index, leaf.data),
    ...leaf.entries.map(({ level, index, hash }) => tileChange(level, index, hash)),
  ];
  if (event.type !== 'ReceiptSigned') return changes;
  const { receiptId, jobId } = event.data;
  const row: LeafRow = { id: receiptId, leafIndex: leaf.index, jobId };
  return [...changes, { table: 'transparency_leaves', key: row.id, apply: (stored) => stored ?? row }];
}

function tileChange(level: TileLevel, index: number, hash: Uint8Array): TransparencyChange {
  const part = Math.floor((index % TILE_WIDTH) / PART_WIDTH);
  const id = `${level}/${Math.floor(index / TILE_WIDTH)}/${part}`;
  const at = (index % PART_WIDTH) * HASH_TEXT;
  // At its own place, so that hashes which already stand are not doubled.
  const apply = (row: TileRow | null) => ({ id, hashes: (row?.hashes ?? '').slice(0, at) + toBase64(hash) });
  return { table: 'transparency_tiles', key: id, apply };
}

function checkpointChange(row: CheckpointRow): readonly TransparencyChange[] {
  // No tree was ever that large, and no column is.
  return isCount(row.size) ? [{ table: 'transparency_checkpoint', key: row.id, apply: () => row }] : [];
}

export const treeRow = ({ size, edge }: Tree): TreeRow => ({
  id: 'all',
  size,
  edge: edge.map(toBase64).join(' '),
});
