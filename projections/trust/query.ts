import { gte, sql } from 'drizzle-orm';
import type { PgDatabase, PgQueryResultHKT } from 'drizzle-orm/pg-core';
import { trustMinutes, trustTotals } from './table.ts';

export type ReceiptTrust = {
  /** Receipts ever signed, and those that verified when they were recorded. */
  readonly receipts: number;
  readonly verified: number;
  /** Receipts verified that were signed in the window's minutes. */
  readonly recentVerified: number;
  readonly latestVerifiedAt: string | null;
};

export function trustQueries(db: PgDatabase<PgQueryResultHKT>) {
  const counted = db
    .select({
      receipts:
        sql<number>`coalesce((select t.receipts from ${trustTotals} t where t.id = 'all'), 0)`.mapWith(
          Number,
        ),
      verified:
        sql<number>`coalesce((select t.verified from ${trustTotals} t where t.id = 'all'), 0)`.mapWith(
          Number,
        ),
      latestVerifiedAt: sql<
        string | null
      >`(select t.latest_verified_at from ${trustTotals} t where t.id = 'all')`,
      recentVerified: sql<number>`coalesce(sum(${trustMinutes.verified}), 0)`.mapWith(Number),
    })
    .from(trustMinutes)
    .where(gte(trustMinutes.minute, sql.placeholder('since')))
    .prepare('trust_receipts');
  return {
    /** `since`: the window's first minute, `YYYY-MM-DDTHH:MM`. */
    async receipts(since: string): Promise<ReceiptTrust> {
      const [row] = await counted.execute({ since });
      if (row === undefined) throw new Error('an aggregate has one row');
      return row;
    },
  };
}
