import { and, desc, eq, getTableColumns, gte, sql } from 'drizzle-orm';
import type { PgDatabase, PgQueryResultHKT } from 'drizzle-orm/pg-core';
import { type ProofRow, proofs } from './table.ts';

/** The public proof summary without its links. */
export type ProofRecord = Omit<ProofRow, 'completedAt'> & {
  /** true only where the last attempt answered 2xx. */
  readonly responseOk: boolean;
  readonly publicFieldsOnly: true;
};

export type FailureRecord = ProofRecord & { readonly completedAt: string };

/** A receipt whose signing key was reported compromised since it was recorded does not verify. */
const verifies = sql<boolean>`${proofs.receiptVerified} and not (exists (select 1 from "revoked_keys")
  and (select true from "receipts" r join "revoked_keys" k on k."key_id" = r."key_id" and r."signed_at" >= k."since"
    where r."id" = ${proofs.receiptId}) is not null)`;
const columns = { ...getTableColumns(proofs), receiptVerified: verifies };

export function proofQueries(db: PgDatabase<PgQueryResultHKT>) {
  const byJob = db
    .select(columns)
    .from(proofs)
    .where(eq(proofs.jobId, sql.placeholder('jobId')))
    .prepare('proof_by_job');
  const newest = db
    .select(columns)
    .from(proofs)
    .orderBy(desc(proofs.createdAt), desc(proofs.jobId))
    .limit(sql.placeholder('limit'))
    .prepare('proofs_newest');
  // `failed` is written out: with a parameter the planner could not know that the partial index holds the rows.
  const failed = db
    .select(columns)
    .from(proofs)
    .where(and(sql`${proofs.status} = 'failed'`, gte(proofs.completedAt, sql.placeholder('since'))))
    .orderBy(desc(proofs.completedAt), desc(proofs.jobId))
    .limit(sql.placeholder('limit'))
    .prepare('proofs_failed_newest');
  return {
    async find(jobId: string): Promise<ProofRecord | null> {
      const [row] = await byJob.execute({ jobId });
      return row === undefined ? null : summary(row);
    },
    /** Newest first, by the job's start. */
    async recent(limit: number): Promise<readonly ProofRecord[]> {
      return (await newest.execute({ limit })).map(summary);
    },
    /** Jobs that failed at `since` (RFC 3339, UTC, or its beginning) or later, newest first, by their completion. */
    async recentFailures(since: string, limit: number): Promise<readonly FailureRecord[]> {
      const rows = await failed.execute({ since, limit });
      return rows.map((row) => ({ ...summary(row), completedAt: row.completedAt ?? '' }));
    },
  };
}

function summary(row: ProofRow): ProofRecord {
  return {
    jobId: row.jobId,
    receiptId: row.receiptId,
    status: row.status,
    method: row.method,
    attempts: row.attempts,
    responseStatus: row.responseStatus,
    responseOk: row.status === 'succeeded',
    receiptVerified: row.receiptVerified,
    errorCategory: row.errorCategory,
    createdAt: row.createdAt,
    updatedAt: row.updatedAt,
    publicFieldsOnly: true,
  };
}
