// The receipt model: every receipt as it was signed, and whether it verified when it was recorded.
// It leaves the full verification, job included, to the one verifier of the domain.
import { sql } from 'drizzle-orm';
import { bigint, boolean, index, pgTable, text } from 'drizzle-orm/pg-core';

export const receipts = pgTable(
  'receipts',
  {
    id: text().primaryKey(),
    jobId: text('job_id').notNull(),
    decisionId: text('decision_id'),
    keyId: text('key_id').notNull(),
    /** Compact JWS: the payload is read from it, so that nothing can differ from what was signed. */
    jws: text().notNull(),
    /** Signature valid and key valid at issue, by the key events before this receipt in the log. */
    verified: boolean().notNull(),
    /** Unix seconds, as the receipt claims; null where its payload cannot be read. */
    issuedAt: bigint('issued_at', { mode: 'number' }),
    signedAt: text('signed_at').notNull(),
    position: text().notNull(),
  },
  (table) => [
    index('receipts_unverified').on(table.id).where(sql`not ${table.verified}`),
    // For the purge: which receipts are the oldest.
    index('receipts_signed').on(table.signedAt),
  ],
);

export type ReceiptRow = Omit<typeof receipts.$inferSelect, 'position'>;
