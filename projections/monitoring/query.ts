import { gte, sql } from 'drizzle-orm';
import type { PgDatabase, PgQueryResultHKT } from 'drizzle-orm/pg-core';
import { failureRate } from '#src/domain/attention.ts';
import { monitoringMinutes, monitoringTotals, runningJobs } from './table.ts';

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

/** A job that ran when last heard of: somebody may have to close it. */
export type RecoveryCandidate = {
  readonly jobId: string;
  readonly startedAt: string;
  readonly leaseMs: number;
  readonly owner: string;
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
      recentSucceeded: sql<number>`coalesce(sum(${monitoringMinutes.succeeded}), 0)`.mapWith(Number),
      recentFailed: sql<number>`coalesce(sum(${monitoringMinutes.failed}), 0)`.mapWith(Number),
    })
    .from(monitoringMinutes)
    .where(gte(monitoringMinutes.minute, sql.placeholder('since')))
    .prepare('monitoring_summary');
  const running = db
    .select({
      jobId: runningJobs.jobId,
      startedAt: runningJobs.startedAt,
      leaseMs: runningJobs.leaseMs,
      owner: runningJobs.owner,
    })
    .from(runningJobs)
    .orderBy(runningJobs.startedAt, runningJobs.jobId)
    .limit(sql.placeholder('limit'))
    .prepare('running_jobs');
  return {
    async summary(nowMs: number, windowMs: number): Promise<ExecutionSummary> {
      const since = windowStart(nowMs, windowMs);
      const [row] = await counted.execute({ since, now: Math.floor(nowMs) });
      if (row === undefined) throw new Error('an aggregate has one row');
      const { overdue, ...counts } = row;
      const finished = counts.recentSucceeded + counts.recentFailed;
      return {
        stats: { ...counts, recentTotal: finished + counts.running, recentRunning: counts.running },
        failureRate: failureRate(counts),
        overdue,
      };
    },
    /** Oldest first. */
    async recoveryCandidates(limit: number): Promise<readonly RecoveryCandidate[]> {
      return await running.execute({ limit });
    },
  };
}
