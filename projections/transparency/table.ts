// The transparency model: the tree over all receipts and key events, as the service publishes it.
// It leaves what a leaf is and how trees are hashed to src/domain/transparency, and signing to the checkpoint's use case.
import { bigint, pgTable, text } from 'drizzle-orm/pg-core';

/** One row, `all`: the tree's size and its right edge. */
export const transparencyTree = pgTable('transparency_tree', {
  id: text().primaryKey(),
  size: bigint({ mode: 'number' }).notNull(),
  /** Roots of the complete subtrees along the right edge, the largest first: base64 with a blank between. */
  edge: text().notNull(),
  position: text().notNull(),
});

/** Hashes in a row: the last row of a level is rewritten with every leaf; the row is short, so the update is in place. */
export const PART_WIDTH = 16;
/** Characters of one: base64 of 32 bytes. */
export const HASH_TEXT = 44;

/** C2SP tiles as far as they are filled, in parts; `entries/…` holds leaf data instead of hashes. */
export const transparencyTiles = pgTable('transparency_tiles', {
  /** Level, number and part of the tile, as in `0/17/15`. */
  id: text().primaryKey(),
  /** 32 bytes each, one after the other: base64 of each, without anything between. */
  hashes: text().notNull(),
  position: text().notNull(),
});

/** A receipt's index among the leaves, and its job. They never change, because the tree only grows, and are not purged. */
export const transparencyLeaves = pgTable('transparency_leaves', {
  /** The receipt's id. The first leaf of an id stays: another one is a finding for the audit. */
  id: text().primaryKey(),
  leafIndex: bigint('leaf_index', { mode: 'number' }).notNull(),
  /** Its stream has the receipt, also when the row of the receipt is purged. */
  jobId: text('job_id').notNull(),
  position: text().notNull(),
});

/** `last`: the newest checkpoint that was signed. `cosigned`: the newest that a quorum of witnesses has cosigned. */
export const transparencyCheckpoint = pgTable('transparency_checkpoint', {
  id: text().primaryKey(),
  size: bigint({ mode: 'number' }).notNull(),
  /** The signed note; of `cosigned` with the cosignatures. */
  note: text().notNull(),
  /** When it was signed, or recorded as cosigned. */
  signedAt: text('signed_at').notNull(),
  position: text().notNull(),
});

export type TreeRow = Omit<typeof transparencyTree.$inferSelect, 'position'>;
export type TileRow = Omit<typeof transparencyTiles.$inferSelect, 'position'>;
export type LeafRow = Omit<typeof transparencyLeaves.$inferSelect, 'position'>;
export type CheckpointRow = Omit<typeof transparencyCheckpoint.$inferSelect, 'position'>;
