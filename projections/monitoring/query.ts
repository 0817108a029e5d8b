import { sql } from 'drizzle-orm';
import type { PgDatabase, PgQueryResultHKT } from 'drizzle-orm/pg-core';
import { failureRate } from '#src/domain/monitoring/alert-rules.ts';
import { type Percentiles, percentilesOf } from './percentiles.ts';
import { DURATION_BOUNDS_MS, monitoringTotals, runningJobs } from './table.ts';
import { FINISHED, finishedSince, firstHour, NO_HOURS } from './window.ts';

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

/** Jobs that finished in the minutes from one start of a bucket to the next. */
export type ExecutionBucket = {
  /** The bucket's first minute, `YYYY-MM-DDTHH:MM`. */
  readonly start: string;
  readonly succeeded: number;
  readonly failed: number;
  /** Null where no duration is known. */
  readonly durationMs: Percentiles | null;
};

export type ExecutionSeries = {
  readonly buckets: readonly ExecutionBucket[];
  /** Of all buckets together. */
  readonly durationMs: Percentiles | null;
};

/**
 * The first minute of the window, `YYYY-MM-DDTHH:MM`: jobs are counted by the minute of their completion, so the window
 * begins with the whole minute that holds `nowMs - windowMs`.
 */
export function windowStart(nowMs: number, windowMs: number): string {
  return new Date(nowMs - windowMs).toISOString().slice(0, 16);
}

export function monitoringQueries(db: PgDatabase<PgQueryResultHKT>) {
  const total = (column: 'started' | 'succeeded' | 'failed') =>
    sql<number>`coalesce((select t.${sql.identifier(column)} from ${monitoringTotals} t where t.id = 'all'), 0)`.mapWith(
      Number,
    );
  const counted = db
    .select({
      total: total('started'),
      succeeded: total('succeeded'),
      failed: total('failed'),
      lastUpdatedAt: sql<
        string | null
      >`(select t.last_updated_at from ${monitoringTotals} t where t.id = 'all')`,
      running: sql<number>`(select count(*) from ${runningJobs})`.mapWith(Number),
      overdue: sql<number>`(select count(*) from ${runningJobs} r
        where r.lease_ends_at < ${sql.placeholder('now')}::bigint)`.mapWith(Number),
      recentSucceeded: sql<number>`coalesce(sum(${FINISHED.succeeded}), 0)`.mapWith(Number),
      recentFailed: sql<number>`coalesce(sum(${FINISHED.failed}), 0)`.mapWith(Number),
    })
    .from(finishedSince)
    .prepare('monitoring_summary');
  // Sorted into the buckets by the text of their starts: nothing that a row says can fail here. The first start is a
  // minute of the window or before it.
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
      const [row] = await counted.execute({ since, hours: firstHour(since), now: Math.floor(nowMs) });
      if (row === undefined) throw new Error('an aggregate has one row');
      const { overdue, ...counts } = row;
      const ended = counts.recentSucceeded + counts.recentFailed;
      return {
        stats: { ...counts, recentTotal: ended + counts.running, recentRunning: counts.running },
        failureRate: failureRate(counts),
        overdue,
      };
    },
    /**
     * Jobs that finished in the minute `since` or later, in buckets that begin at `starts`: in their order, the first not
     * after `since`, all of them minutes. The last bucket has no end.
     */
    async series(since: string, starts: readonly string[]): Promise<ExecutionSeries> {
      // Of an hour that lies in two buckets its minutes have to be read.
      const hours = starts.every((start) => start.endsWith(':00')) ? firstHour(since) : NO_HOURS;
      const rows = await bucketed.execute({ since, hours, starts: JSON.stringify(starts) });
      const found = new Map(rows.map((row) => [row.bucket, row]));
      const all = rows.reduce<readonly number[]>((sum, { durations }) => added(sum, durations), []);
      const buckets = starts.map((start, at) => {
        const { succeeded = 0, failed = 0, durations = [] } = found.get(at + 1) ?? {};
        return { start, succeeded, failed, durationMs: percentilesOf(added([], durations)) };
      });
      return { buckets, durationMs: percentilesOf(all) };
    },
    /** Ids of the jobs that ran when last heard of, oldest first: somebody may have to close them. */
    async recoveryCandidates(limit: number): Promise<readonly string[]> {
      return (await running.execute({ limit })).map(({ jobId }) => jobId);
    },
  };
}

function added(sum: readonly number[], more: readonly (number | null)[]): readonly number[] {
  return more.map((count, at) => (sum[at] ?? 0) + (count ?? 0));
}
