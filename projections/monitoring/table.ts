// The monitoring model: how many jobs ended how in which minute, how many ever, and which are running.
// It leaves the failures' summaries to the proof model and the verdict on it all to attention.ts.
import { bigint, integer, pgTable, text } from 'drizzle-orm/pg-core';

/** A count is a bigint: totals survive retention. */
const count = (name: string) => bigint(name, { mode: 'number' }).notNull();

export const monitoringMinutes = pgTable('monitoring_minutes', {
  /** The minute of completion, UTC: `YYYY-MM-DDTHH:MM`. */
  minute: text().primaryKey(),
  succeeded: integer().notNull(),
  failed: integer().notNull(),
  position: text().notNull(),
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
  leaseMs: bigint('lease_ms', { mode: 'number' }).notNull(),
  /** ms since the Unix epoch. */
  leaseEndsAt: bigint('lease_ends_at', { mode: 'number' }).notNull(),
  owner: text().notNull(),
  position: text().notNull(),
});

export type MinuteRow = Omit<typeof monitoringMinutes.$inferSelect, 'position'>;
export type TotalsRow = Omit<typeof monitoringTotals.$inferSelect, 'position'>;
export type RunningRow = Omit<typeof runningJobs.$inferSelect, 'position'>;
