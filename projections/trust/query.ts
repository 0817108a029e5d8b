import { eq, gte, type SQL, sql } from 'drizzle-orm';
import type { PgDatabase, PgQueryResultHKT } from 'drizzle-orm/pg-core';
import { trustMinutes, trustOpenPayments, trustTotals } from './table.ts';

export type ReceiptTrust = {
  /** Receipts ever signed, and those that verify. */
  readonly receipts: number;
  readonly verified: number;
  /** Receipts that verify and were signed in the window's minutes. */
  readonly recentVerified: number;
  readonly latestVerifiedAt: string | null;
};

/** Numbers of payments, without those that are missing on the chain: charged = served + refunded + open. */
export type PaymentTrust = {
  readonly charged: number;
  readonly served: number;
  readonly refunded: number;
  readonly open: number;
};

/**
 * The number of receipts that verified when they were recorded and do not any more, because their signing key was reported
 * compromised. `within`: a condition on a row `m` of `trustMinutes`. In the minute of the compromise the receipts before it
 * are counted one by one; once they are purged, the whole minute counts as revoked. The aggregate is lateral, so without
 * such a key no other table is read.
 */
export const revokedReceipts = (
  within: SQL,
): SQL => sql`coalesce((select sum(s."revoked") from "revoked_keys" k
  cross join lateral (
    select sum(m."verified" - case left(m."id", 16) when left(k."since", 16) then (
        select count(*) from "receipts" r where r."key_id" = k."key_id" and r."verified"
          and r."signed_at" >= left(k."since", 16) and r."signed_at" < k."since")
      else 0 end) as "revoked"
    from ${trustMinutes} m
    where m."key_id" = k."key_id" and m."id" >= left(k."since", 16) and ${within}
  ) s), 0)`;

/** Of the receipts in store. It is in the newest minute that no compromise revokes whole, or before. */
const latestStillVerified = sql`(select r."signed_at" from "receipts" r
  where r."verified" and r."signed_at" < (
      select left(m."id", 16) || ':60' from ${trustMinutes} m
      where not exists (
        select 1 from "revoked_keys" k where k."key_id" = m."key_id" and left(m."id", 16) > left(k."since", 16))
      order by m."id" desc limit 1)
    and not exists (
      select 1 from "revoked_keys" k where k."key_id" = r."key_id" and r."signed_at" >= k."since")
  order by r."signed_at" desc limit 1)`;

export function trustQueries(db: PgDatabase<PgQueryResultHKT>) {
  const counted = db
    .select({
      receipts:
        sql<number>`coalesce((select t.receipts from ${trustTotals} t where t.id = 'all'), 0)`.mapWith(
          Number,
        ),
      verified: sql<number>`coalesce((select t.verified from ${trustTotals} t where t.id = 'all'), 0)
        - ${revokedReceipts(sql`true`)}`.mapWith(Number),
      latestVerifiedAt: sql<string | null>`case when exists (select 1 from "revoked_keys")
        then ${latestStillVerified}
        else (select t.latest_verified_at from ${trustTotals} t where t.id = 'all') end`,
      recentVerified: sql<number>`coalesce(sum(${trustMinutes.verified}), 0)
        - ${revokedReceipts(sql`m."id" >= ${sql.placeholder('since')}`)}`.mapWith(Number),
    })
    .from(trustMinutes)
    .where(gte(trustMinutes.id, sql.placeholder('since')))
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
    .where(eq(trustOpenPayments.missing, false))
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
