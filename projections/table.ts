// The tables of a generation beside those of its models: the projection position and the retention horizon.
import { bigint, jsonb, pgTable, text } from 'drizzle-orm/pg-core';

/** One row, `all`. */
export const projection = pgTable('projection', {
  id: text().primaryKey(),
  /** Incremented by every write to the rows: a writer expects the version that it has read. */
  version: bigint({ mode: 'number' }).notNull(),
  /** Position of the last event in the rows, whether it changed a row or not; null: none. */
  position: text(),
  /** `eventMark` of that event. */
  event: text(),
  /** How many rows each table has, by its name; without an entry, none. Written by every batch and every purge. */
  counts: jsonb().$type<Readonly<Record<string, number>>>().notNull(),
  /** The first delete that neither a batch nor a purge made, as in `truncate of jobs`; null: none. */
  loss: text(),
});

/** One row, `live`; none before the first purge. Written by the purge, in the transaction of its deletes. */
export const retention = pgTable('retention', {
  id: text().primaryKey(),
  /** Jobs (their job and proof rows) that ended before this are purged: RFC 3339, UTC. */
  jobsBefore: text('jobs_before'),
  /** Receipts signed, and decisions recorded, before this are purged. */
  receiptsBefore: text('receipts_before'),
  /** Rows purged so far: the number of stored rows is a subtraction, not a scan. */
  jobsPurged: bigint('jobs_purged', { mode: 'number' }).notNull(),
  receiptsPurged: bigint('receipts_purged', { mode: 'number' }).notNull(),
});
