import { sql } from 'drizzle-orm';
import type { PgDatabase, PgQueryResultHKT } from 'drizzle-orm/pg-core';
import { failureRate } from '#src/domain/monitoring/alert-rules.ts';
import { iso } from '#src/lib/iso.ts';
import {
  DURATION_BOUNDS_MS,
  monitoringHours,
  monitoringMinutes,
  monitoringTotals,
  runningJobs,
} from './table.ts';

/** `stats` of the monitoring summary. Jobs that run now are recent ones. */
export type ExecutionStats = {
  readonly total: number;
  readonly succeeded: number;
  readonly failed: number;
  readonly running: number;
  readonly recentTotal: number;
  readonly recentSucceeded: number;
  readonly recentFailed: number;
  readonly recentRunning: number;
  readonly lastUpdatedAt: string | null;
};

export type ExecutionSummary = {
  readonly stats: ExecutionStats;
  /** recentFailed of the finished in the window; 0 where none finished. */
  readonly failureRate: number;
  /** Jobs running past their lease. */
  readonly overdue: number;
};

/** What is counted of all jobs, whatever the window. `overdue`: running past their lease. */
export type ExecutionTotals = Pick<
  ExecutionStats,
  'total' | 'succeeded' | 'failed' | 'running' | 'lastUpdatedAt'
> &
  Pick<ExecutionSummary, 'overdue'>;

/** Jobs that finished in the minutes from one start of a bucket to the next. */
export type ExecutionBucket = {
  /** The bucket's first minute, `YYYY-MM-DDTHH:MM`. */
  readonly start: string;
  readonly succeeded: number;
  readonly failed: number;
  /** How many executions took how long, by class; empty where no duration is known. */
  readonly durations: readonly number[];
};

/** Of all executions in the buckets together; null where no duration is known. */
export function durationsOf(buckets: readonly Pick<ExecutionBucket, 'durations'>[]): Percentiles | null {
  const sum: number[] = [];
  for (const { durations } of buckets)
    for (const [at, count] of durations.entries()) sum[at] = (sum[at] ?? 0) + count;
  return percentilesOf(sum);
}

/** `finished`: in the window. */
export function summaryOf(
  { overdue, ...totals }: ExecutionTotals,
  finished: Pick<ExecutionBucket, 'succeeded' | 'failed'>,
): ExecutionSummary {
  const recent = { recentSucceeded: finished.succeeded, recentFailed: finished.failed };
  const recentTotal = finished.succeeded + finished.failed + totals.running;
  return {
    stats: { ...totals, ...recent, recentTotal, recentRunning: totals.running },
    failureRate: failureRate(recent),
    overdue,
  };
}

/**
 * The first minute of a window, `YYYY-MM-DDTHH:MM`: jobs are counted by the minute of their completion, so the window
 * begins with the whole minute that holds `nowMs - windowMs`.
 */
export function windowStart(nowMs: number, windowMs: number): string {
  return iso(nowMs - windowMs).slice(0, 16);
}

export function monitoringQueries(db: PgDatabase<PgQueryResultHKT>) {
  const total = (column: 'started' | 'succeeded' | 'failed') =>
    sql<number>`coalesce((select t.${sql.identifier(column)} from ${monitoringTotals} t where t.id = 'all'), 0)`.mapWith(
      Number,
    );
  const totals = {
    total: total('started'),
    succeeded: total('succeeded'),
    failed: total('failed'),
    lastUpdatedAt: sql<
      string | null
    >`(select t.last_updated_at from ${monitoringTotals} t where t.id = 'all')`,
    running: sql<number>`(select count(*) from ${runningJobs})`.mapWith(Number),
    overdue: sql<number>`(select count(*) from ${runningJobs} r
      where r.lease_ends_at < ${sql.placeholder('now')}::bigint)`.mapWith(Number),
  };
  const counted = db.select(totals).from(sql`(select 1) one`).prepare('monitoring_totals');
  const summed = db
    .select({
      ...totals,
      recentSucceeded: sql<number>`coalesce(sum(${FINISHED.succeeded}), 0)`.mapWith(Number),
      recentFailed: sql<number>`coalesce(sum(${FINISHED.failed}), 0)`.mapWith(Number),
    })
    .from(finishedSince)
    .prepare('monitoring_summary');
  // Sorted into the buckets by the text of their starts: nothing that a row says can fail here.
  const starts = sql`array(select json_array_elements_text(${sql.placeholder('starts')}::text::json))`;
  const sums = [...DURATION_BOUNDS_MS, Number.POSITIVE_INFINITY].map(
    (_, at) => sql`sum(${FINISHED.durations}[${sql.raw(String(at + 1))}])`,
  );
  const bucketed = db
    .select({
      bucket: sql<number>`width_bucket(${FINISHED.minute} collate "C", ${starts} collate "C")`.mapWith(
        Number,
      ),
      succeeded: sql<number>`sum(${FINISHED.succeeded})`.mapWith(Number),
      failed: sql<number>`sum(${FINISHED.failed})`.mapWith(Number),
      durations: sql<readonly (number | null)[]>`json_build_array(${sql.join(sums, sql`, `)})`,
    })
    .from(finishedSince)
    .groupBy(sql`1`)
    .prepare('monitoring_series');
  const running = db
    .select({ jobId: runningJobs.jobId })
    .from(runningJobs)
    .orderBy(runningJobs.startedAt, runningJobs.jobId)
    .limit(sql.placeholder('limit'))
    .prepare('running_jobs');
  return {
    async summary(nowMs: number, windowMs: number): Promise<ExecutionSummary> {
      const since = windowStart(nowMs, windowMs);
      const [row] = await summed.execute({ since, hours: firstHour(since), now: Math.floor(nowMs) });
      if (row === undefined) throw new Error('an aggregate has one row');
      const { recentSucceeded: succeeded, recentFailed: failed, ...all } = row;
      return summaryOf(all, { succeeded, failed });
    },
    async totals(nowMs: number): Promise<ExecutionTotals> {
      const [row] = await counted.execute({ now: Math.floor(nowMs) });
      if (row === undefined) throw new Error('a query without a table has one row');
      return row;
    },
    /** Finished jobs in buckets that begin at `starts`: minutes, in their order. The last bucket has no end. */
    async series(starts: readonly string[]): Promise<readonly ExecutionBucket[]> {
      const [since = ''] = starts;
      // Of an hour that lies in two buckets its minutes have to be read.
      const hours = starts.every((start) => start.endsWith(':00')) ? firstHour(since) : NO_HOURS;
      const rows = await bucketed.execute({ since, hours, starts: JSON.stringify(starts) });
      const found = new Map(rows.map((row) => [row.bucket, row]));
      return starts.map((start, at) => {
        const { succeeded = 0, failed = 0, durations = [] } = found.get(at + 1) ?? {};
        return { start, succeeded, failed, durations: durations.map((count) => count ?? 0) };
      });
    },
    /** Ids of the jobs that ran when last heard of, oldest first: somebody may have to close them. */
    async recoveryCandidates(limit: number): Promise<readonly string[]> {
      return (await running.execute({ limit })).map(({ jobId }) => jobId);
    },
  };
}

// ── percentiles ──────────────────────────────────────────────────────────────────────────────────────
// Percentiles of durations that were counted by class. An estimate lies in the class of the duration that it stands
// for: it is wrong by 28 % of it at most (the widest class reaches from 25 to 32 ms), in the first class by less
// than 25 ms; of what took longer than the last bound no more is said than that bound.

/** Milliseconds. */
type Percentiles = { readonly p50: number; readonly p95: number };

/** `counts`: how many durations by class; null where there are none. */
export function percentilesOf(counts: readonly number[]): Percentiles | null {
  const total = counts.reduce((sum, count) => sum + count, 0);
  if (total === 0) return null;
  return { p50: atRank(counts, Math.ceil(total * 0.5)), p95: atRank(counts, Math.ceil(total * 0.95)) };
}

/** The duration with `rank` (from 1) of all in order: those of one class are taken to lie in it at equal distances. */
function atRank(counts: readonly number[], rank: number): number {
  let before = 0;
  for (const [at, count] of counts.entries()) {
    if (before + count < rank) {
      before += count;
      continue;
    }
    const lower = DURATION_BOUNDS_MS[at - 1] ?? 0;
    const upper = DURATION_BOUNDS_MS[at] ?? lower;
    return Math.round(lower + (upper - lower) * ((rank - before - 0.5) / count));
  }
  return DURATION_BOUNDS_MS.at(-1) ?? 0;
}

// ── window ───────────────────────────────────────────────────────────────────────────────────────────
// What finished in a window, row by row: minutes up to the first full hour, and hours from there on. Sums over these rows
// are those over the window's minutes alone.

const HOUR_MS = 3_600_000;

/** The first full hour of a window that begins with the minute `since`: its first minute, `YYYY-MM-DDTHH:MM`. */
function firstHour(since: string): string {
  const hour = Math.ceil(Date.parse(`${since}:00.000Z`) / HOUR_MS);
  return iso(hour * HOUR_MS).slice(0, 16);
}

/** Columns of `finishedSince`. `minute`: of an hour its first one. */
const FINISHED = {
  minute: sql.raw('f."minute"'),
  succeeded: sql.raw('f."succeeded"'),
  failed: sql.raw('f."failed"'),
  durations: sql.raw('f."durations"'),
};

/** After every hour: only minutes are read. */
const NO_HOURS = '9999-12-31T23:00';

const since = sql.placeholder('since');
const hours = sql.placeholder('hours');

/** Takes the parameters `since`, the window's first minute, and `hours`, its first full hour or `NO_HOURS`. */
const finishedSince = sql`(
  select m."minute", m."succeeded", m."failed", m."durations" from ${monitoringMinutes} m
    where m."minute" >= ${since} and m."minute" < ${hours}
  union all
  select h."hour" || ':00', h."succeeded", h."failed", h."durations" from ${monitoringHours} h
    where h."hour" >= left(${hours}::text, 13)
) f`;
