// The retention horizon: what the purge took away so far. Moved only by the purge, in the transaction of its deletes,
// and copied by a rebuild, so that rebuilt rows stay equal to live ones.
import { bigint, pgTable, text } from 'drizzle-orm/pg-core';

/** One row, `live`; none before the first purge. */
export const retention = pgTable('retention', {
  id: text().primaryKey(),
  /** Jobs (their job and proof rows) completed before this are gone: RFC 3339, UTC. */
  jobsBefore: text('jobs_before'),
  /** Receipts signed, and decisions recorded, before this are gone. */
  receiptsBefore: text('receipts_before'),
  /** How many went, ever: what is in store is counted by subtraction, not by a scan. */
  jobsPurged: bigint('jobs_purged', { mode: 'number' }).notNull(),
  receiptsPurged: bigint('receipts_purged', { mode: 'number' }).notNull(),
});
