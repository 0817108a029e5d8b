// Windows that several processes count together: what RateLimiterDrizzle of rate-limiter-flexible asks for.
import { integer, pgTable, text, timestamp } from 'drizzle-orm/pg-core';

export const quotaWindows = pgTable('quota_windows', {
  /** A keyed hash: what is counted (a payer, a host, an address) stands in no table. */
  key: text().primaryKey(),
  points: integer().notNull(),
  expire: timestamp({ precision: 3, withTimezone: true }),
});
