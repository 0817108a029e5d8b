// The table of quota windows that several processes share.
import { index, integer, pgTable, text, timestamp } from 'drizzle-orm/pg-core';

export const quotaWindows = pgTable(
  'quota_windows',
  {
    /** A keyed hash: the table contains no payer, host or address in plain text. */
    key: text().primaryKey(),
    points: integer().notNull(),
    expire: timestamp({ precision: 3, withTimezone: true }),
  },
  (table) => [
    // For deleting ended windows.
    index('quota_windows_expire').on(table.expire),
  ],
);
