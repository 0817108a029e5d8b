// Where a rebuild works: a schema of its own beside the live one, made by the same migrations, with a row that says what
// is being rebuilt and how far it is. A rebuild that was killed is found there again.
import { sql } from 'drizzle-orm';
import type { RebuildStore, RebuildTransaction } from '#src/ports/rebuild-store.ts';
import { type Checkpoint, readCheckpoint } from './checkpoint.ts';
import { type Db, rowsOf } from './rows.ts';

/** What was asked for cannot be done; nothing was changed. The message is for a person. */
export class CannotRebuild extends Error {}
/** The rebuilt rows are not to be believed; the live ones stay. The message is for a person. */
export class RebuildFailed extends Error {}

export type Place = {
  /** Where the live tables are. */
  readonly live: string;
  /** The session's own search_path, under which they are found. */
  readonly livePath: string;
  /** Where the new ones are made. */
  readonly beside: string;
};

export type Counts = {
  /** Events handled, whether they changed a row or not. */
  readonly handled: number;
  /** Jobs whose start was among them: the live rows know how many there are. */
  readonly started: number;
  /** Table → rows, as the fold has them. */
  readonly rows: Readonly<Record<string, number>>;
};

export type Standing = { readonly checkpoint: Checkpoint | null; readonly counts: Counts };

const NOTHING: Counts = { handled: 0, started: 0, rows: {} };

/** Any 64-bit number but the projector's and the migrations'. Of the session: one rebuild at a time. */
const REBUILD_LOCK = '125779768603955';
/** A rebuild that was killed may hold its lock until the server has noticed. */
const LOCK_TRIES = 20;
const LOCK_PAUSE_MS = 100;

export async function findPlace(store: RebuildStore<Db>): Promise<Place> {
  return store.transaction(async ({ db }) => {
    const [row] = await rowsOf<{ live: string | null; path: string }>(
      db,
      sql`select current_schema() as live, current_setting('search_path') as path`,
    );
    if (row === undefined || row.live === null) {
      throw new CannotRebuild('the search_path of the database user names no schema that exists');
    }
    return { live: row.live, livePath: row.path, beside: `${row.live}_rebuild` };
  });
}

/** From here on, in this transaction, tables without a schema are those of `where`. */
export async function workIn(tx: Db, place: Place, where: 'live' | 'beside'): Promise<void> {
  const path = where === 'live' ? place.livePath : `"${place.beside.replaceAll('"', '""')}"`;
  await tx.execute(sql`select set_config('search_path', ${path}, true)`);
}

/** Takes the lock of rebuilds for this session; throws `CannotRebuild` where another has it. */
export async function takeLock(store: RebuildStore<Db>, pause: (ms: number) => Promise<void>): Promise<void> {
  for (let left = LOCK_TRIES; left > 0; left--) {
    const locked = await store.transaction(async ({ db }) => {
      const [row] = await rowsOf<{ locked: boolean }>(
        db,
        sql`select pg_try_advisory_lock(${REBUILD_LOCK}::bigint) as locked`,
      );
      return row?.locked === true;
    });
    if (locked) return;
    await pause(LOCK_PAUSE_MS);
  }
  throw new CannotRebuild('another rebuild or check is at work on this database');
}

/** Every transaction of a rebuild begins so: another session than that which took the lock must not go on. */
export async function fenced<T>(
  store: RebuildStore<Db>,
  work: (tx: RebuildTransaction<Db>) => Promise<T>,
  isolation?: 'repeatable read',
): Promise<T> {
  return store.transaction(async (tx) => {
    const [row] = await rowsOf<{ held: boolean }>(
      tx.db,
      sql`select exists (select from pg_locks where locktype = 'advisory' and pid = pg_backend_pid() and granted
        and database = (select oid from pg_database where datname = current_database()) and objsubid = 1
        and (classid::bigint << 32 | objid::bigint) = ${REBUILD_LOCK}::bigint) as held`,
    );
    if (row?.held !== true) throw new Error('the connection of the rebuild was lost: run it again');
    return work(tx);
  }, isolation);
}

/**
 * What an earlier rebuild of the same thing left, up to `until` at most; null: nothing, or something else, which is gone
 * now.
 */
export async function findStanding(
  store: RebuildStore<Db>,
  place: Place,
  wanted: {
    readonly identity: string;
    readonly set: string;
    readonly until: string;
    /** Whether the log has the event that the rows end with. */
    readonly fits: (checkpoint: Checkpoint) => Promise<boolean>;
  },
): Promise<Standing | null> {
  return fenced(store, async ({ db }) => {
    const there = await rowsOf(db, sql`select 1 from pg_namespace where nspname = ${place.beside}`);
    if (there.length === 0) return null;
    const ours = await rowsOf(
      db,
      sql`select 1 from pg_tables where schemaname = ${place.beside} and tablename = 'rebuild_state'`,
    );
    if (ours.length === 0) {
      throw new CannotRebuild(`the schema ${place.beside} is there, and not of a rebuild: it is in the way`);
    }
    await workIn(db, place, 'beside');
    const [state] = await rowsOf<{ identity: string; counts: Counts }>(
      db,
      sql`select "identity", "counts" from "rebuild_state"`,
    );
    const checkpoint = await readCheckpoint(db, wanted.set);
    const stands =
      checkpoint === null || (checkpoint.position <= wanted.until && (await wanted.fits(checkpoint)));
    if (state?.identity === wanted.identity && stands) return { checkpoint, counts: state.counts };
    await dropBeside(db, place);
    return null;
  });
}

/** Empty tables, by the migrations, in one transaction: either all of it is there or nothing. */
export async function makeBeside(store: RebuildStore<Db>, place: Place, identity: string): Promise<Standing> {
  return fenced(store, async ({ db }) => {
    await db.execute(sql`create schema ${sql.identifier(place.beside)}`);
    await workIn(db, place, 'beside');
    for (const statement of store.schema.statements) await db.execute(sql.raw(statement));
    await db.execute(sql`create table "rebuild_state" ("identity" text not null, "counts" json not null)`);
    await db.execute(
      sql`insert into "rebuild_state" values (${identity}, ${JSON.stringify(NOTHING)}::text::json)`,
    );
    return { checkpoint: null, counts: NOTHING };
  });
}

/** In the transaction of the rows that they count; `workIn(…, 'beside')` comes before. */
export async function writeCounts(tx: Db, counts: Counts): Promise<void> {
  await tx.execute(sql`update "rebuild_state" set "counts" = ${JSON.stringify(counts)}::text::json`);
}

export async function dropBeside(tx: Db, place: Place): Promise<void> {
  await tx.execute(sql`drop schema if exists ${sql.identifier(place.beside)} cascade`);
}
