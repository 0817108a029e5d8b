// Windows that several processes count together.
import { index, integer, pgTable, text, timestamp } from 'drizzle-orm/pg-core';

export const quotaWindows = pgTable(
  'quota_windows',
  {
    /** A keyed hash: what is counted (a payer, a host, an address) stands in no table. */
    key: text().primaryKey(),
    points: integer().notNull(),
    expire: timestamp({ precision: 3, withTimezone: true }),
  },
  (table) => [
    // For the sweep.
    index('quota_windows_expire').on(table.expire),
  ],
);
