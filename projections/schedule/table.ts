// The schedule model: what was ordered, without the request, and what became of each run. It decides nothing: the runner
// takes its candidates from it, and reads their streams.
import { index, integer, jsonb, pgTable, text } from 'drizzle-orm/pg-core';
import type { ScheduleDefined } from '#src/domain/events/schedule.ts';

export const schedules = pgTable(
  'schedules',
  {
    scheduleId: text('schedule_id').primaryKey(),
    status: text().$type<'active' | 'paused' | 'cancelled'>().notNull(),
    schedule: jsonb().$type<ScheduleDefined['schedule']>().notNull(),
    catchUpSeconds: integer('catch_up_seconds').notNull(),
    definedAt: text('defined_at').notNull(),
    endsAt: text('ends_at').notNull(),
    /** The first run without a payment; null: there is none any more. */
    nextRun: integer('next_run'),
    nextDueAt: text('next_due_at'),
    position: text().notNull(),
  },
  (table) => [index('schedules_next').on(table.status, table.nextDueAt)],
);

export const scheduleRuns = pgTable(
  'schedule_runs',
  {
    /** The job's id; of a run that had no payment, or lost it to another run, `<scheduleId>.<run>`. */
    id: text().primaryKey(),
    scheduleId: text('schedule_id').notNull(),
    run: integer().notNull(),
    jobId: text('job_id'),
    /** Keyed hash of the client address that bought it; null: it is not known. */
    client: text(),
    dueAt: text('due_at').notNull(),
    /** `started`: it has no job yet. */
    state: text().$type<'funded' | 'started' | 'running' | 'executed' | 'skipped'>().notNull(),
    reason: text(),
    startedAt: text('started_at'),
    lateByMs: integer('late_by_ms'),
    receiptId: text('receipt_id'),
    position: text().notNull(),
  },
  (table) => [
    index('schedule_runs_of').on(table.scheduleId, table.run),
    index('schedule_runs_due').on(table.state, table.dueAt),
  ],
);

export type ScheduleRow = Omit<typeof schedules.$inferSelect, 'position'>;
export type ScheduleRunRow = Omit<typeof scheduleRuns.$inferSelect, 'position'>;
