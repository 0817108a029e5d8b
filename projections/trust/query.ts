import { gte, sql } from 'drizzle-orm';
import type { PgDatabase, PgQueryResultHKT } from 'drizzle-orm/pg-core';
import { trustMinutes, trustOpenPayments, trustTotals } from './table.ts';

export type ReceiptTrust = {
  /** Receipts ever signed, and those that verified when they were recorded. */
  readonly receipts: number;
  readonly verified: number;
  /** Receipts verified that were signed in the window's minutes. */
  readonly recentVerified: number;
  readonly latestVerifiedAt: string | null;
};

/** Numbers of payments: charged = served + refunded + open, as in `relay payments --balance`. */
export type PaymentTrust = {
  readonly charged: number;
  readonly served: number;
  readonly refunded: number;
  readonly open: number;
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
  const total = (column: typeof trustTotals.charged | typeof trustTotals.refunded) =>
    sql<number>`coalesce((select ${column} from ${trustTotals} where ${trustTotals.id} = 'all'), 0)`.mapWith(
      Number,
    );
  const books = db
    .select({
      charged: total(trustTotals.charged),
      refunded: total(trustTotals.refunded),
      open: sql<number>`count(*)`.mapWith(Number),
    })
    .from(trustOpenPayments)
    .prepare('trust_payments');
  return {
    async payments(): Promise<PaymentTrust> {
      const [row] = await books.execute();
      if (row === undefined) throw new Error('an aggregate has one row');
      const { charged, refunded, open } = row;
      return { charged, served: charged - refunded - open, refunded, open };
    },
    /** `since`: the window's first minute, `YYYY-MM-DDTHH:MM`. */
    async receipts(since: string): Promise<ReceiptTrust> {
      const [row] = await counted.execute({ since });
      if (row === undefined) throw new Error('an aggregate has one row');
      return row;
    },
  };
}
