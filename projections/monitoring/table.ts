// The monitoring model: how many jobs ended how in which minute and hour, how many ever, and which are running.
// It leaves the failures' summaries to the proof model and the verdict on it all to src/domain/monitoring.
import { bigint, integer, pgTable, text } from 'drizzle-orm/pg-core';

/** A count is a bigint: totals survive retention. */
const count = (name: string) => bigint(name, { mode: 'number' }).notNull();

/**
 * Upper ends, ms, of the classes that durations of executions are counted in: the R10 series (ISO 3), ten classes to a
 * factor of ten, from 25 ms to the longest that an execution may take. One more class holds what took longer. Rows are
 * projected with these bounds: a change to them requires a higher model version.
 */
export const DURATION_BOUNDS_MS: readonly number[] = [
  ...[25, 32, 40, 50, 63, 80, 100, 125, 160, 200, 250, 315, 400, 500, 630, 800],
  ...[1000, 1250, 1600, 2000, 2500, 3150, 4000, 5000, 6300, 8000],
  ...[10_000, 12_500, 16_000, 20_000, 25_000, 31_500, 40_000, 50_000, 60_000],
];

const finished = () => ({
  succeeded: integer().notNull(),
  failed: integer().notNull(),
  position: text().notNull(),
  /** How many executions took how long, by class, up to the last class that has one. Null: none is known. */
  durations: integer().array(),
});

export const monitoringMinutes = pgTable('monitoring_minutes', {
  /** The minute of completion, UTC: `YYYY-MM-DDTHH:MM`. */
  minute: text().primaryKey(),
  ...finished(),
});

/** The sums of the hour's minutes. */
export const monitoringHours = pgTable('monitoring_hours', {
  /** UTC: `YYYY-MM-DDTHH`. */
  hour: text().primaryKey(),
  ...finished(),
});

/** One row, `all`. */
export const monitoringTotals = pgTable('monitoring_totals', {
  id: text().primaryKey(),
  started: count('started'),
  succeeded: count('succeeded'),
  failed: count('failed'),
  lastUpdatedAt: text('last_updated_at').notNull(),
  position: text().notNull(),
});

/** A row while a job runs. */
export const runningJobs = pgTable('running_jobs', {
  jobId: text('job_id').primaryKey(),
  startedAt: text('started_at').notNull(),
  /** ms since the Unix epoch. */
  leaseEndsAt: bigint('lease_ends_at', { mode: 'number' }).notNull(),
  position: text().notNull(),
});

export type MinuteRow = Omit<typeof monitoringMinutes.$inferSelect, 'position'>;
export type HourRow = Omit<typeof monitoringHours.$inferSelect, 'position'>;
export type TotalsRow = Omit<typeof monitoringTotals.$inferSelect, 'position'>;
export type RunningRow = Omit<typeof runningJobs.$inferSelect, 'position'>;
