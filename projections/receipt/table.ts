// The receipt model: every receipt as it was signed, and whether it verified when it was recorded; and the signing keys
// that were reported compromised since. The queries of all models join the two: their rows do not change.
// It leaves the full verification, job included, to the one verifier of the domain.
import { sql } from 'drizzle-orm';
import { boolean, index, pgTable, text } from 'drizzle-orm/pg-core';

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
    /** Its second is the receipt's `iat`; the audit compares them. */
    signedAt: text('signed_at').notNull(),
    position: text().notNull(),
  },
  (table) => [
    index('receipts_unverified').on(table.id).where(sql`not ${table.verified}`),
    // For the purge: which receipts are the oldest.
    index('receipts_signed').on(table.signedAt),
  ],
);

/** A receipt of the key signed at `since` or later does not verify. A retirement alone revokes no receipt. */
export const revokedKeys = pgTable('revoked_keys', {
  keyId: text('key_id').primaryKey(),
  /** The second of the compromise, `YYYY-MM-DDTHH:MM:SS`. */
  since: text().notNull(),
  position: text().notNull(),
});

export type ReceiptRow = Omit<typeof receipts.$inferSelect, 'position'>;
export type RevokedKeyRow = Omit<typeof revokedKeys.$inferSelect, 'position'>;
