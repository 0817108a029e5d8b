// Which rows the purge has deleted: a rebuild does not bring them back, and a comparison leaves them out.
import { type SQL, sql } from 'drizzle-orm';
import { RETAINED } from './registry.ts';
import { type Db, rowsOf, type TableShape } from './rows.ts';

export type Horizon = { readonly jobsBefore: string | null; readonly receiptsBefore: string | null };

export async function readHorizon(tx: Db, schema: string): Promise<Horizon> {
  const [row] = await rowsOf<{ jobs: string | null; receipts: string | null }>(
    tx,
    sql`select jobs_before as jobs, receipts_before as receipts from ${sql.identifier(schema)}.retention`,
  );
  return { jobsBefore: row?.jobs ?? null, receiptsBefore: row?.receipts ?? null };
}

/** Table → which of its rows are purged at this horizon, for the tables that have any. */
export function purgedAt(horizon: Horizon): ReadonlyMap<string, SQL> {
  const found = RETAINED.flatMap(({ table, time, ended, horizon: name }) => {
    const before = name === 'jobs' ? horizon.jobsBefore : horizon.receiptsBefore;
    return before === null ? [] : [[table, sql`(${ended} and ${sql.identifier(time)} < ${before})`] as const];
  });
  return new Map(found);
}

/** Copies the horizon of the schema `from` to `schema` and deletes what is behind it; returns whether that was any. */
export async function horizonFrom(
  tx: Db,
  from: string,
  schema: string,
  shapes: readonly TableShape[],
): Promise<boolean> {
  const { jobsBefore, receiptsBefore } = await readHorizon(tx, from);
  if (jobsBefore === null && receiptsBefore === null) return false;
  const tables = new Set(shapes.map(({ name }) => name));
  const gone: Record<string, number> = {};
  for (const [table, purged] of purgedAt({ jobsBefore, receiptsBefore })) {
    if (!tables.has(table)) continue;
    const [row] = await rowsOf<{ n: number }>(
      tx,
      sql`with gone as (delete from ${sql.identifier(schema)}.${sql.identifier(table)} where ${purged} returning 1)
        select count(*)::int as n from gone`,
    );
    gone[table] = row?.n ?? 0;
  }
  await tx.execute(sql`insert into ${sql.identifier(schema)}.retention as r
      ("id", "jobs_before", "receipts_before", "jobs_purged", "receipts_purged")
    values ('live', ${jobsBefore}::text, ${receiptsBefore}::text, ${gone.jobs ?? 0}::bigint, ${gone.receipts ?? 0}::bigint)
    on conflict ("id") do update set
      "jobs_before" = excluded."jobs_before", "receipts_before" = excluded."receipts_before",
      "jobs_purged" = r."jobs_purged" + excluded."jobs_purged",
      "receipts_purged" = r."receipts_purged" + excluded."receipts_purged"`);
  return Object.values(gone).some((n) => n > 0);
}
