// The proof model: the public, redacted summary of every job, newest first.
// It leaves out target, headers, body, hashes, signature, key and payer: they are not in its table.
import { sql } from 'drizzle-orm';
import { boolean, index, integer, pgTable, text } from 'drizzle-orm/pg-core';
import type { ErrorCategory, Method } from '#src/domain/event-fields.ts';

export const proofs = pgTable(
  'proofs',
  {
    jobId: text('job_id').primaryKey(),
    receiptId: text('receipt_id'),
    status: text().$type<'running' | 'succeeded' | 'failed'>().notNull(),
    method: text().$type<Method>().notNull(),
    attempts: integer().notNull(),
    responseStatus: integer('response_status'),
    receiptVerified: boolean('receipt_verified').notNull(),
    errorCategory: text('error_category').$type<ErrorCategory>(),
    createdAt: text('created_at').notNull(),
    updatedAt: text('updated_at').notNull(),
    /** null while running. */
    completedAt: text('completed_at'),
    position: text().notNull(),
  },
  (table) => [
    index('proofs_newest').on(table.createdAt, table.jobId),
    index('proofs_failed_newest').on(table.completedAt, table.jobId).where(sql`${table.status} = 'failed'`),
    // For the purge: which jobs ended longest ago.
    index('proofs_ended').on(table.updatedAt).where(sql`${table.status} <> 'running'`),
  ],
);

export type ProofRow = Omit<typeof proofs.$inferSelect, 'position'>;
