// The job model: what `GET /api/jobs/{id}` shows of a job, and what verification compares with its receipt.
// It leaves the receipt itself to the receipt model, and counting to monitoring.
import { sql } from 'drizzle-orm';
import { index, integer, jsonb, pgTable, text } from 'drizzle-orm/pg-core';
import type { ErrorCategory, Method, Mode, PaymentFacts } from '#src/domain/event-fields.ts';
import type { AttemptMade } from '#src/domain/events/job.ts';
import type { PaymentRefunded } from '#src/domain/events/refund.ts';

export type AttemptLogEntry = Pick<
  AttemptMade,
  'number' | 'startedAt' | 'phase' | 'sent' | 'status' | 'errorCategory' | 'reason' | 'timings'
> & { readonly completedAt: string };

/** The return of the charge. `verified`: the transfer was found on the chain; else only the operator states it. */
export type JobRefund = Pick<PaymentRefunded, 'transaction' | 'refundedAt'> & { readonly verified: boolean };

/** Never an origin, a path, a header name or a key: ids of jobs are public. */
export const jobs = pgTable(
  'jobs',
  {
    id: text().primaryKey(),
    status: text().$type<'running' | 'succeeded' | 'failed'>().notNull(),
    method: text().$type<Method>().notNull(),
    mode: text().$type<Mode>().notNull(),
    attempts: integer().notNull(),
    attemptLog: jsonb('attempt_log').$type<readonly AttemptLogEntry[]>().notNull(),
    targetCommitment: text('target_commitment').notNull(),
    requestHash: text('request_hash').notNull(),
    responseStatus: integer('response_status'),
    responseHash: text('response_hash'),
    errorCategory: text('error_category').$type<ErrorCategory>(),
    decisionId: text('decision_id'),
    receiptId: text('receipt_id'),
    /** For verification only; never shown: it names the payer. */
    payment: jsonb().$type<PaymentFacts>(),
    refund: jsonb().$type<JobRefund>(),
    createdAt: text('created_at').notNull(),
    updatedAt: text('updated_at').notNull(),
    /** Position of the last event applied: an event that comes again changes nothing. */
    position: text().notNull(),
  },
  (table) => [
    // For the purge: which jobs ended longest ago.
    index('jobs_ended').on(table.updatedAt).where(sql`${table.status} <> 'running'`),
  ],
);

export type JobRow = Omit<typeof jobs.$inferSelect, 'position'>;
