// The purge: rows older than their retention are deleted, oldest first, a few in each transaction, and the horizon moves
// with them: all that ended before it is gone. Rows by minute and by hour stay: one a minute is no burden.
import { type SQL, sql } from 'drizzle-orm';
import { iso } from '#src/lib/iso.ts';
import type { Clock } from '#src/ports/clock.ts';
import type { Logger } from '#src/ports/logger.ts';
import type { ReadStore } from '#src/ports/read-store.ts';
import { RETAINED, type Retained } from './registry.ts';
import { type Db, mayDelete, rowsOf } from './rows.ts';
import { retention } from './table.ts';

/** How long after their end (jobs) or their creation (receipts, decisions) rows are kept; null: always. */
export type RetentionMs = { readonly jobs: number | null; readonly receipts: number | null };

export const KEEP_ALL: RetentionMs = { jobs: null, receipts: null };

export type Purge = {
  /** In how many ms the next step is due; 0: now. `leads`: this process projects, so its steps delay no other process. */
  dueInMs(leads: boolean): number;
  /** One bounded step. Never throws: projecting does not depend on it. */
  step(db: Db): Promise<void>;
};

/** Rows of one table in one transaction; more only where they ended at the very same time. */
const MAX_ROWS = 125;
const EVERY_MS = 60_000;
/** For one who follows: another purges, unless it is idle and gone. */
const FOLLOWER_EVERY_MS = 600_000;
/** While more is to go: a step, and then so many times its length for others. */
const REST = 4;
/** No autovacuum runs in an embedded store: without one, the space of what is gone would never be used again. */
const VACUUM_EVERY_MS = 3_600_000;

export type PurgeDeps = {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly store: Pick<ReadStore<Db>, 'disposable'>;
};

export function makePurge({ clock, logger, store }: PurgeDeps, keep: RetentionMs): Purge {
  const never = keep.jobs === null && keep.receipts === null;
  const state = { last: Number.NEGATIVE_INFINITY, rest: 0 };
  const vacuum = { last: Number.NEGATIVE_INFINITY, due: [] as string[], gone: 0 };
  return {
    dueInMs(leads) {
      if (never) return Number.POSITIVE_INFINITY;
      const rest = leads ? state.rest : Math.max(state.rest, FOLLOWER_EVERY_MS);
      return Math.max(0, state.last + rest - clock.monotonic());
    },
    async step(db) {
      const begun = clock.monotonic();
      try {
        const more = await purgeOrVacuum(db);
        state.rest = more ? REST * (clock.monotonic() - begun) : EVERY_MS;
        logger.condition('purge', null);
      } catch (error) {
        logger.condition('purge', 'failing', {}, error);
        state.rest = EVERY_MS;
      }
      state.last = clock.monotonic();
    },
  };

  /** Whether more is to be done. */
  async function purgeOrVacuum(db: Db): Promise<boolean> {
    const table = vacuum.due.shift();
    if (table !== undefined) {
      await db.execute(sql`vacuum ${sql.identifier(table)}`);
      return vacuum.due.length > 0;
    }
    // A purge is final: no row goes before both clocks permit it. An embedded store has no clock of its own.
    const now = store.disposable ? clock.now() : Math.min(clock.now(), await databaseNow(db));
    const before = { jobs: instant(now, keep.jobs), receipts: instant(now, keep.receipts) };
    const { gone, more } = await purgeOnce(db, before);
    vacuum.gone += gone;
    const isVacuumed = clock.monotonic() - vacuum.last < VACUUM_EVERY_MS;
    if (more || !store.disposable || vacuum.gone === 0 || isVacuumed) return more;
    vacuum.last = clock.monotonic();
    vacuum.gone = 0;
    vacuum.due = RETAINED.map((retained) => retained.table);
    return true;
  }
}

/** Unix ms, by the database's clock. */
async function databaseNow(db: Db): Promise<number> {
  const select = sql`select (extract(epoch from clock_timestamp()) * 1000)::float8 as "now"`;
  const [row] = await rowsOf<{ readonly now: number }>(db, select);
  if (row === undefined) throw new Error('the database returned no time');
  return row.now;
}

const instant = (now: number, keepMs: number | null): string | null =>
  keepMs === null ? null : iso(Math.max(0, now - keepMs));

/** By horizon: what is older than this may go; null: nothing. */
export type Before = Readonly<Record<Retained['horizon'], string | null>>;

export type Purged = { readonly gone: number; readonly more: boolean };

const NOTHING: Purged = { gone: 0, more: false };

/** Deletes the oldest rows of what is older than `before`, at most `maxRows` of a table, and moves the horizon. */
export async function purgeOnce(db: Db, before: Before, maxRows = MAX_ROWS): Promise<Purged> {
  return await db.transaction(async (tx) => {
    // Who projects meanwhile waits, and then finds another version: no deleted row is written again.
    await tx.execute(sql`select 1 from projection where id = 'all' for update`);
    const jobs = before.jobs === null ? null : await cutOf(tx, 'jobs', before.jobs, maxRows);
    const receipts = before.receipts === null ? null : await cutOf(tx, 'receipts', before.receipts, maxRows);
    if (jobs === null && receipts === null) return NOTHING;
    // Without it a store that keeps no statistics reads whole tables.
    await tx.execute(sql`set local enable_seqscan = off`);
    const gone = await cut(tx, { jobs, receipts });
    const isPart = (at: string | null, whole: string | null) => at !== null && at !== whole;
    return { gone, more: isPart(jobs, before.jobs) || isPart(receipts, before.receipts) };
  });
}

type Oldest = {
  readonly oldest: string | null;
  /** Of the first row that is too many; null: there are not so many. */
  readonly last: string | null;
  /** The next after the oldest. */
  readonly next: string | null;
};

/** Where to cut: at least one row of the horizon's tables is before it; null: none is before `before`. */
async function cutOf(tx: Db, horizon: keyof Before, before: string, maxRows: number): Promise<string | null> {
  const selects = RETAINED.filter((retained) => retained.horizon === horizon).map(
    ({ table, time, ended }) => {
      const at = sql.identifier(time);
      const from = sql`from ${sql.identifier(table)} where ${ended} and ${at} < ${before}`;
      const oldest = sql`(select ${at} ${from} order by ${at} limit 1)`;
      return sql`select ${oldest} as "oldest",
      (select ${at} ${from} order by ${at} offset ${maxRows} limit 1) as "last",
      (select ${at} ${from} and ${at} > ${oldest} order by ${at} limit 1) as "next"`;
    },
  );
  const found = await rowsOf<Oldest>(tx, sql.join(selects, sql` union all `));
  const cuts = found.flatMap(({ oldest, last, next }) =>
    oldest === null ? [] : [(last === oldest ? next : last) ?? before],
  );
  return cuts.sort()[0] ?? null;
}

/**
 * Deletes rows and moves the horizon in one statement; returns the number of rows. The horizon never moves back: rows
 * projected again before it are deleted again. `tx`: a transaction. Who projects finds another version.
 */
export async function cut(tx: Db, at: Before): Promise<number> {
  await mayDelete(tx);
  const deletes = RETAINED.map(({ table, time, ended, horizon }) => {
    const name = sql.identifier(`gone_${table}`);
    return sql`${name} as (delete from ${sql.identifier(table)}
      where ${ended} and ${sql.identifier(time)} < ${at[horizon]}::text returning 1)`;
  });
  const counts = RETAINED.map(({ table }) => sql`(select count(*) from ${sql.identifier(`gone_${table}`)})`);
  const left = RETAINED.map(
    ({ table }, n) => sql`${table}::text, coalesce((counts ->> ${table}::text)::bigint, 0) - ${counts[n]}`,
  );
  const [row] = await rowsOf<{ readonly gone: number | string }>(
    tx,
    sql`with ${sql.join(deletes, sql`, `)},
      moved as (insert into ${retention} as r ("id", "jobs_before", "receipts_before", "jobs_purged", "receipts_purged")
        values ('live', ${at.jobs}::text, ${at.receipts}::text,
          (select count(*) from gone_jobs), (select count(*) from gone_receipts))
        on conflict ("id") do update set
          "jobs_before" = greatest(r."jobs_before", excluded."jobs_before"),
          "receipts_before" = greatest(r."receipts_before", excluded."receipts_before"),
          "jobs_purged" = r."jobs_purged" + excluded."jobs_purged",
          "receipts_purged" = r."receipts_purged" + excluded."receipts_purged"),
      counted as (update projection set version = version + 1,
        counts = counts || jsonb_build_object(${sql.join(left, sql`, `)}) where id = 'all')
      select ${sql.join(counts, sql` + `)} as "gone"`,
  );
  return Number(row?.gone ?? 0);
}

/** The horizon of the rows in `schema`. */
export async function readHorizon(tx: Db, schema: string): Promise<Before> {
  const [row] = await rowsOf<{ jobs: string | null; receipts: string | null }>(
    tx,
    sql`select jobs_before as jobs, receipts_before as receipts from ${sql.identifier(schema)}.retention`,
  );
  return { jobs: row?.jobs ?? null, receipts: row?.receipts ?? null };
}

/** Whether a row of the table is behind the horizon: a comparison leaves it out. */
export function isPurged(table: string, horizon: Before): SQL {
  const retained = RETAINED.find((each) => each.table === table);
  const before = retained && horizon[retained.horizon];
  return retained && before
    ? sql`(${retained.ended} and ${sql.identifier(retained.time)} < ${before})`
    : sql`false`;
}
