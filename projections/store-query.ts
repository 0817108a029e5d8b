// Queries about the store as a whole: how many rows it holds, how many receipts do not verify.
import { sql } from 'drizzle-orm';
import { monitoringTotals } from './monitoring/table.ts';
import { receipts } from './receipt/table.ts';
import type { Db } from './rows.ts';
import { retention } from './table.ts';
import { revokedReceipts } from './trust/query.ts';
import { trustTotals } from './trust/table.ts';

export function storeQueries(db: Db) {
  const counted = db
    .select({
      jobs: sql<number>`coalesce((select t.started from ${monitoringTotals} t where t.id = 'all'), 0)
        - coalesce((select r.jobs_purged from ${retention} r where r.id = 'live'), 0)`.mapWith(Number),
      receipts: sql<number>`coalesce((select t.receipts from ${trustTotals} t where t.id = 'all'), 0)
        - coalesce((select r.receipts_purged from ${retention} r where r.id = 'live'), 0)`.mapWith(Number),
    })
    .from(sql`(select 1) one`)
    .prepare('store_counts');
  // In the minute of the horizon some receipts are purged: revoked ones are counted from the next minute on.
  const retained = sql`left(m."id", 16) >
    (select coalesce(left(max(r."receipts_before"), 16), '') from ${retention} r)`;
  const unverified = db
    .select({ count: sql<number>`count(*) + ${revokedReceipts(retained)}`.mapWith(Number) })
    .from(receipts)
    .where(sql`not ${receipts.verified}`)
    .prepare('receipts_unverified');
  return {
    /** Jobs and receipts in store: counted by what came and what went, not by a scan. */
    async counts(): Promise<{ readonly jobs: number; readonly receipts: number }> {
      const [row] = await counted.execute();
      if (row === undefined) throw new Error('a query without a table has one row');
      return row;
    },
    /** Of the receipts in store. */
    async countUnverified(): Promise<number> {
      const [row] = await unverified.execute();
      return row?.count ?? 0;
    },
  };
}

export const store = {
  queries: storeQueries,
  needs: { counts: 'whole', countUnverified: 'whole' },
} as const;
