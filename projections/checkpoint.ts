// The checkpoint: up to which position of which log the rows tell. Written in the rows' own transaction.
import { type SQL, sql } from 'drizzle-orm';
import { pgTable, text } from 'drizzle-orm/pg-core';
import { type Db, rowsOf } from './rows.ts';

/** One row, `live`. */
export const checkpoints = pgTable('checkpoints', {
  id: text().primaryKey(),
  /** Position of the last event handled, whether it changed a row or not. */
  position: text().notNull(),
  /** Id of the log's first event: rows of another log are never continued. */
  origin: text().notNull(),
});

export type Checkpoint = { readonly position: string; readonly origin: string };

/** Any 64-bit number will do; this one spells `relay` and 1. */
const PROJECTOR_LOCK = 125779768603953n;

/** null: nothing was projected yet. */
export async function readCheckpoint(db: Db): Promise<Checkpoint | null> {
  const [row] = await rowsOf<Checkpoint>(
    db,
    sql`select "position", "origin" from ${checkpoints} where "id" = ${'live'}`,
  );
  return row ?? null;
}

/**
 * The projector's lock until the end of this transaction, or false at once where another holds it. Freed with its
 * connection: who died, or was frozen for longer than the server allows, blocks nobody.
 */
export async function tryProjectorLock(tx: Db): Promise<boolean> {
  const [row] = await rowsOf<{ locked: boolean }>(
    tx,
    sql`select pg_try_advisory_xact_lock(${String(PROJECTOR_LOCK)}::bigint) as locked`,
  );
  return row?.locked === true;
}

/**
 * Writes the rows and moves the checkpoint from `from` (null: there is none) to `to`, in one statement. False where
 * the checkpoint is elsewhere: somebody else projected, and the transaction must be rolled back.
 */
export async function writeBatch(
  tx: Db,
  rows: { readonly ctes: readonly SQL[]; readonly doc: string },
  from: Checkpoint | null,
  to: Checkpoint,
): Promise<boolean> {
  const parts = [sql`doc as materialized (select ${rows.doc}::text::json as d)`, ...rows.ctes];
  const move =
    from === null
      ? sql`insert into ${checkpoints} ("id", "position", "origin") values ('live', ${to.position}, ${to.origin})
          on conflict ("id") do nothing returning "position"`
      : sql`update ${checkpoints} set "position" = ${to.position} where "id" = 'live'
          and "position" = ${from.position} and "origin" = ${to.origin} returning "position"`;
  const moved = await rowsOf(tx, sql`with ${sql.join(parts, sql`, `)} ${move}`);
  return moved.length === 1;
}

/** Takes away every row and the checkpoint: for a store that may be replayed without asking. */
export async function clearRows(db: Db, tables: readonly string[]): Promise<void> {
  const all = [...tables, 'checkpoints', 'retention'].map((name) => sql.identifier(name));
  await db.execute(sql`truncate ${sql.join(all, sql`, `)}`);
}
