// The retention horizon: what the purge took away so far. Moved only by the purge, in the transaction of its deletes,
// and copied by a rebuild, so that rebuilt rows stay equal to live ones.
import { type SQL, sql } from 'drizzle-orm';
import { bigint, pgTable, text } from 'drizzle-orm/pg-core';

/** One row, `live`; none before the first purge. */
export const retention = pgTable('retention', {
  id: text().primaryKey(),
  /** Jobs (their job and proof rows) that ended before this are gone: RFC 3339, UTC. */
  jobsBefore: text('jobs_before'),
  /** Receipts signed, and decisions recorded, before this are gone. */
  receiptsBefore: text('receipts_before'),
  /** How many went, ever: what is in store is counted by subtraction, not by a scan. */
  jobsPurged: bigint('jobs_purged', { mode: 'number' }).notNull(),
  receiptsPurged: bigint('receipts_purged', { mode: 'number' }).notNull(),
});

/** Which rows go at which horizon: by the time in their own columns, which no later event changes. */
export const RETAINED = [
  { table: 'jobs', time: 'updated_at', ended: sql`"status" <> 'running'`, horizon: 'jobs' },
  { table: 'proofs', time: 'updated_at', ended: sql`"status" <> 'running'`, horizon: 'jobs' },
  { table: 'receipts', time: 'signed_at', ended: sql`true`, horizon: 'receipts' },
  { table: 'decisions', time: 'created_at', ended: sql`true`, horizon: 'receipts' },
] as const satisfies readonly {
  readonly table: string;
  readonly time: string;
  readonly ended: SQL;
  readonly horizon: 'jobs' | 'receipts';
}[];
