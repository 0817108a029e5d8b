import { eq, sql } from 'drizzle-orm';
import type { PgDatabase, PgQueryResultHKT } from 'drizzle-orm/pg-core';
import { concatBytes, fromBase64 } from '#src/domain/encoding.ts';
import { TILE_WIDTH, type TileLevel } from '#src/domain/transparency/tiles.ts';
import type { Tree } from '#src/domain/transparency/tree.ts';
import {
  type CheckpointRow,
  HASH_TEXT,
  PART_WIDTH,
  type TreeRow,
  transparencyCheckpoint,
  transparencyLeaves,
  transparencyTiles,
  transparencyTree,
} from './table.ts';

export type LoggedCheckpoint = {
  readonly size: number;
  readonly note: string;
  /** When it was signed, or recorded as cosigned. */
  readonly signedAt: string;
};

/** Numbers of a tile's parts. */
const PARTS = Array.from({ length: TILE_WIDTH / PART_WIDTH }, (_, part) => String(part));

/** The result of the first call, from then on. */
function once<T>(make: () => T): () => T {
  let made: { readonly value: T } | null = null;
  return () => {
    made ??= { value: make() };
    return made.value;
  };
}

export function transparencyQueries(db: PgDatabase<PgQueryResultHKT>) {
  // Prepared at their first use: a process that signs reads the tree in a new transaction each second.
  const tree = once(() => db.select().from(transparencyTree).prepare('transparency_tree'));
  const tile = once(() =>
    db
      .select({ id: transparencyTiles.id, hashes: transparencyTiles.hashes })
      .from(transparencyTiles)
      .where(sql`${transparencyTiles.id} in (${sql.join(PARTS.map(sql.placeholder), sql`, `)})`)
      .prepare('transparency_tile'),
  );
  const leaf = once(() =>
    db
      .select({ leafIndex: transparencyLeaves.leafIndex, jobId: transparencyLeaves.jobId })
      .from(transparencyLeaves)
      .where(eq(transparencyLeaves.id, sql.placeholder('id')))
      .prepare('transparency_leaf'),
  );
  const checkpoint = once(() =>
    db
      .select()
      .from(transparencyCheckpoint)
      .where(eq(transparencyCheckpoint.id, sql.placeholder('id')))
      .prepare('transparency_checkpoint'),
  );
  async function find(id: CheckpointRow['id']): Promise<LoggedCheckpoint | null> {
    const [row] = await checkpoint().execute({ id });
    return row === undefined ? null : { size: row.size, note: row.note, signedAt: row.signedAt };
  }
  return {
    /** The whole tree as it stands; empty where nothing was logged. */
    async tree(): Promise<Tree> {
      const [row] = await tree().execute();
      return readTree(row ?? null);
    },
    /** The tile's hashes (or leaf data) as far as they are there, 32 bytes each; null where none is. */
    async tile(level: TileLevel, n: number): Promise<Uint8Array | null> {
      const ids = PARTS.map((part) => [part, `${level}/${n}/${part}`] as const);
      const found = new Map(
        (await tile().execute(Object.fromEntries(ids))).map((row) => [row.id, row.hashes]),
      );
      const parts = ids.map(([, id]) => found.get(id));
      const end = parts.indexOf(undefined);
      return end === 0 ? null : readHashes(parts.slice(0, end < 0 ? parts.length : end).join(''));
    },
    /** The receipt's index among the leaves; null where it is not logged. */
    async leafIndex(receiptId: string): Promise<number | null> {
      const [row] = await leaf().execute({ id: receiptId });
      return row?.leafIndex ?? null;
    },
    /** The job that a receipt is of, also of one that is purged; null where it is not logged. */
    async jobOf(receiptId: string): Promise<string | null> {
      const [row] = await leaf().execute({ id: receiptId });
      return row?.jobId ?? null;
    },
    /** The newest checkpoint; null where none was ever signed. */
    checkpoint: () => find('last'),
    /** The newest that a quorum of witnesses has cosigned, with its cosignatures; null where there is none. */
    cosigned: () => find('cosigned'),
  };
}

/** Throws where the row holds no tree: it was not written by this service. */
export function readTree(row: TreeRow | null): Tree {
  if (row === null) return { size: 0, edge: [] };
  const edge = row.edge === '' ? [] : row.edge.split(' ').map(readHash);
  return { size: row.size, edge };
}

function readHashes(text: string): Uint8Array {
  const parts = Array.from({ length: text.length / HASH_TEXT }, (_, at) =>
    readHash(text.slice(at * HASH_TEXT, (at + 1) * HASH_TEXT)),
  );
  return concatBytes(...parts);
}

function readHash(text: string): Uint8Array {
  const hash = fromBase64(text);
  if (hash?.length !== 32) throw new Error('a stored hash of the transparency log cannot be read');
  return hash;
}
