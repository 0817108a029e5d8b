// Receipts that verified when they were recorded, but no longer do, because a key was reported compromised since.
import { sql } from 'drizzle-orm';
import type { PgDatabase, PgQueryResultHKT } from 'drizzle-orm/pg-core';
import type { Revocation } from '#src/domain/signing-keys/compromised.ts';
import { receipts } from './table.ts';

/** Of the rows `r`; takes the parameter `by`. */
const undone = sql`r."verified" and exists (
  select 1 from json_to_recordset(${sql.placeholder('by')}::text::json) as u("keyId" text, "from" bigint)
  where u."keyId" = r."key_id" and r."issued_at" >= u."from")`;

export function undoneQueries(db: PgDatabase<PgQueryResultHKT>) {
  const rows = sql`${receipts} r`;
  const counted = db
    .select({
      receipts: sql<number>`count(*)`.mapWith(Number),
      recent: sql<number>`count(*) filter (where r."signed_at" >= ${sql.placeholder('since')})`.mapWith(
        Number,
      ),
      latestVerifiedAt: sql<string | null>`(select r."signed_at" from ${rows}
        where r."verified" and not (${undone}) order by r."signed_at" desc limit 1)`,
    })
    .from(rows)
    .where(undone)
    .prepare('receipts_undone');
  const among = db
    .select({ id: sql<string>`r."id"` })
    .from(rows)
    .where(
      sql`r."id" in (select json_array_elements_text(${sql.placeholder('ids')}::text::json)) and ${undone}`,
    )
    .prepare('receipts_undone_of');
  return {
    /**
     * Of all receipts in store: how many are undone, in all and signed in the minute `since` or later, and when the last
     * of those that still verify was signed. It reads every row.
     */
    async countUndone(by: readonly Revocation[], since: string) {
      const [row] = await counted.execute({ by: JSON.stringify(by), since });
      if (row === undefined) throw new Error('an aggregate has one row');
      return row;
    },
    /** Which of these are undone. */
    async undoneOf(by: readonly Revocation[], ids: readonly string[]): Promise<readonly string[]> {
      const found = await among.execute({ by: JSON.stringify(by), ids: JSON.stringify(ids) });
      return found.map(({ id }) => id);
    },
  };
}
