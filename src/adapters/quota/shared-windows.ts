// The statements on the windows that processes share. All time is the database's: a process whose clock is an hour
// ahead neither makes a window of an hour nor finds the windows of others ended.
import { sql } from 'drizzle-orm';
import type { PgDatabase, PgQueryResultHKT } from 'drizzle-orm/pg-core';
import type { Window } from './own-windows.ts';
import { quotaWindows } from './table.ts';

export type Db = PgDatabase<PgQueryResultHKT>;

export type SharedTake = { readonly key: string; readonly units: number; readonly windowMs: number };

const { key, points, expire } = quotaWindows;

/** A window that ends later than a new one would, by more than this, was made before the clock was set back. */
const CLOCK_SET_BACK = sql`interval '1 minute'`;
const columns = {
  key,
  points,
  resetMs: sql`greatest(0, extract(epoch from ${expire} - now()) * 1000)`.mapWith(Number),
};

/** One after the other in one statement: for each take its window as it was right after it. */
export async function takeShared(db: Db, takes: readonly SharedTake[]): Promise<Window[]> {
  const totals = new Map<string, SharedTake>();
  for (const take of takes) {
    const units = (totals.get(take.key)?.units ?? 0) + take.units;
    totals.set(take.key, { ...take, units });
  }
  const after = await takeTotals(db, [...totals.values()]);
  const later = new Map<string, number>();
  const inTurn = takes.toReversed().map(({ key: of, units }): Window => {
    const window = after.get(of);
    if (window === undefined) throw new Error('a window was not counted');
    const since = later.get(of) ?? 0;
    later.set(of, since + units);
    return { ...window, points: window.points - since };
  });
  return inTurn.reverse();
}

/** Each key once. Rows are locked in the order of their keys, so that two processes cannot wait for each other. */
async function takeTotals(db: Db, takes: readonly SharedTake[]): Promise<Map<string, Window>> {
  const rows = JSON.stringify(takes.map((take) => ({ k: take.key, n: take.units, ms: take.windowMs })));
  const isOpen = sql`(${expire} > now() and ${expire} <= excluded.expire + ${CLOCK_SET_BACK}) is true`;
  const taken = await db
    .insert(quotaWindows)
    // A crash of the database may forget the last takes: nobody waits for its disk.
    .select(
      sql`select w.k, w.n, now() + w.ms * interval '1 millisecond'
        from json_to_recordset(${rows}::text::json) as w (k text, n integer, ms bigint),
          (select set_config('synchronous_commit', 'off', true) as commit) as quick
        where quick.commit = 'off'
        order by w.k collate "C"`,
    )
    .onConflictDoUpdate({
      target: key,
      set: {
        points: sql`case when ${isOpen} then ${points} else 0 end + excluded.points`,
        expire: sql`case when ${isOpen} then ${expire} else excluded.expire end`,
      },
    })
    .returning(columns);
  return byKey(taken);
}

/** Those of these windows that are open. */
export async function lookShared(db: Db, keys: readonly string[]): Promise<Map<string, Window>> {
  const asked = sql`select json_array_elements_text(${JSON.stringify(keys)}::text::json)`;
  const found = await db
    .select(columns)
    .from(quotaWindows)
    .where(sql`${key} = any(array(${asked})) and ${expire} > now()`);
  return byKey(found);
}

/**
 * Removes windows that have ended, those that ended first, at most `max`: how many it were. What another process removes
 * just now it leaves.
 */
export async function sweepShared(db: Db, max: number): Promise<number> {
  const ended = sql`select ${key} from ${quotaWindows} where ${expire} < now()
    order by ${expire} limit ${max} for update skip locked`;
  const gone = await db.delete(quotaWindows).where(sql`${key} = any(array(${ended}))`).returning({ key });
  return gone.length;
}

const byKey = (rows: readonly (Window & { readonly key: string })[]): Map<string, Window> =>
  new Map(rows.map((row) => [row.key, { points: row.points, resetMs: row.resetMs }]));
