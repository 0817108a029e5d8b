// The checkpoint: up to which position of which log the rows tell. Written in the rows' own transaction.
// Each set of models has its own: a version with a model more begins with the log's first event, for that model alone,
// and processes of both versions can project side by side, in either order of updates.
import { type SQL, sql } from 'drizzle-orm';
import { pgTable, text } from 'drizzle-orm/pg-core';
import { type Db, rowsOf } from './rows.ts';

export const checkpoints = pgTable('checkpoints', {
  /** The names of the set's models with a blank between, sorted; `live` names the set of the first release. */
  id: text().primaryKey(),
  /** Position of the last event handled, whether it changed a row or not. */
  position: text().notNull(),
  /** Id of the log's first event: rows of another log are never continued. */
  origin: text().notNull(),
  /** `eventMark` of the event at `position`; null where a version wrote the row that had no such column. */
  event: text(),
});

export type Checkpoint = {
  readonly position: string;
  readonly origin: string;
  readonly event: string | null;
};

/** Any 64-bit number will do; this one spells `relay` and 1. */
const PROJECTOR_LOCK = 125779768603953n;

const FIRST_SET = 'job monitoring proof receipt trust';

export function modelSet(models: readonly { readonly name: string }[]): string {
  const set = models
    .map(({ name }) => name)
    .sort()
    .join(' ');
  return set === FIRST_SET ? 'live' : set;
}

const modelsOf = (set: string) => (set === 'live' ? FIRST_SET : set).split(' ');

/** null: nothing was projected for this set yet. */
export async function readCheckpoint(db: Db, set: string): Promise<Checkpoint | null> {
  return (await readCheckpoints(db)).own(set);
}

export type Checkpoints = {
  own(set: string): Checkpoint | null;
  /** Every log that some rows are of: one, or none. */
  readonly origins: readonly string[];
  /** Of every set. */
  readonly all: readonly Checkpoint[];
  /** Model → the position up to which its rows are told already, by whichever set. */
  readonly told: ReadonlyMap<string, string>;
  /** Up to where the rows of all of the set's models are told, by whichever sets; null: not of all of them. */
  standing(set: string): Checkpoint | null;
};

export async function readCheckpoints(db: Db): Promise<Checkpoints> {
  const rows = await rowsOf<Checkpoint & { readonly id: string }>(
    db,
    sql`select "id", "position", "origin", "event" from ${checkpoints}`,
  );
  const told = new Map<string, string>();
  for (const { id, position } of rows) {
    for (const model of modelsOf(id)) if ((told.get(model) ?? '') < position) told.set(model, position);
  }
  const origins = [...new Set(rows.map(({ origin }) => origin))];
  return {
    own(set) {
      const row = rows.find(({ id }) => id === set);
      return row === undefined ? null : checkpointOf(row);
    },
    origins,
    all: rows.map(checkpointOf),
    told,
    standing(set) {
      const [position = ''] = modelsOf(set)
        .map((model) => told.get(model) ?? '')
        .sort();
      const [origin] = origins;
      return position === '' || origin === undefined ? null : { position, origin, event: null };
    },
  };
}

const checkpointOf = ({ position, origin, event }: Checkpoint): Checkpoint => ({ position, origin, event });

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
 * Writes the rows and moves the set's checkpoint from `from` (null: there is none) to `to`, in one statement. False where
 * the checkpoint is elsewhere, or `condition` does not hold: somebody else projected, and the transaction must be rolled
 * back.
 */
export async function writeBatch(
  tx: Db,
  set: string,
  rows: { readonly ctes: readonly SQL[]; readonly doc: string },
  from: Checkpoint | null,
  to: Checkpoint,
  condition: SQL = sql`true`,
): Promise<boolean> {
  const parts = [sql`doc as materialized (select ${rows.doc}::text::json as d)`, ...rows.ctes];
  const move =
    from === null
      ? sql`insert into ${checkpoints} ("id", "position", "origin", "event")
          select ${set}, ${to.position}, ${to.origin}, ${to.event} where ${condition}
          on conflict ("id") do nothing returning "position"`
      : sql`update ${checkpoints} set "position" = ${to.position}, "event" = ${to.event} where "id" = ${set}
          and "position" = ${from.position} and "origin" = ${to.origin} and ${condition} returning "position"`;
  const moved = await rowsOf(tx, sql`with ${sql.join(parts, sql`, `)} ${move}`);
  return moved.length === 1;
}

/** Takes away every row and what is known of them: for a store that may be replayed without asking. */
export async function clearRows(db: Db, tables: readonly string[]): Promise<void> {
  const all = [...tables, 'checkpoints', 'retention', 'model_versions'].map((name) => sql.identifier(name));
  await db.execute(sql`truncate ${sql.join(all, sql`, `)}`);
}
