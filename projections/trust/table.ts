// The trust model: how many receipts there are, how many verified, and when the last one did; and how many payments were
// charged, refunded and are open.
// It leaves the score to src/domain/monitoring/trust.ts, and rates of jobs to monitoring.
import { bigint, boolean, index, integer, pgTable, text } from 'drizzle-orm/pg-core';

/** One row, `all`. */
export const trustTotals = pgTable('trust_totals', {
  id: text().primaryKey(),
  receipts: bigint({ mode: 'number' }).notNull(),
  verified: bigint({ mode: 'number' }).notNull(),
  latestVerifiedAt: text('latest_verified_at'),
  /** Payments ever settled, without those that are missing on the chain, and those ever refunded. */
  charged: bigint({ mode: 'number' }).notNull(),
  refunded: bigint({ mode: 'number' }).notNull(),
  position: text().notNull(),
});

/** Receipts that verified when they were recorded, by the minute of signing and the signing key. */
export const trustMinutes = pgTable(
  'trust_minutes',
  {
    /** The minute, UTC, and the signing key: `YYYY-MM-DDTHH:MM <key id>`. */
    id: text().primaryKey(),
    keyId: text('key_id').notNull(),
    verified: integer().notNull(),
    position: text().notNull(),
  },
  (table) => [index('trust_minutes_of_key').on(table.keyId, table.id)],
);

/** Payments that were charged, and neither served nor refunded; and those that are missing on the chain. */
export const trustOpenPayments = pgTable('trust_open_payments', {
  jobId: text('job_id').primaryKey(),
  /** It counts as charged only if the chain shows it later. */
  missing: boolean().notNull(),
  /** Of a missing one: it was served or refunded. */
  closed: boolean().notNull(),
  position: text().notNull(),
});

export type TrustOpenPaymentRow = Omit<typeof trustOpenPayments.$inferSelect, 'position'>;
export type TrustTotalsRow = Omit<typeof trustTotals.$inferSelect, 'position'>;
export type TrustMinuteRow = Omit<typeof trustMinutes.$inferSelect, 'position'>;
