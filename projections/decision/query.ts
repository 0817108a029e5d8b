import { desc, eq, getTableColumns, sql } from 'drizzle-orm';
import type { PgDatabase, PgQueryResultHKT } from 'drizzle-orm/pg-core';
import { type DecisionRow, decisions } from './table.ts';

/** What became of a decision. `attempts`, `responseStatus` and `errorCategory` are known once its job has ended. */
export type DecisionOutcome = Pick<
  DecisionRow,
  'jobId' | 'receiptId' | 'receiptVerified' | 'responseStatus' | 'errorCategory' | 'attempts'
> & { readonly status: DecisionRow['outcomeStatus'] };

/** The public summary of a decision, without its links: no hash of what was decided on. */
export type DecisionSummary = Omit<
  DecisionRow,
  keyof DecisionOutcome | 'outcomeStatus' | 'actionHash' | 'policyHash'
> & { readonly outcome: DecisionOutcome };

/** `GET /api/decisions/{id}` without its links. */
export type DecisionRecord = DecisionSummary & Pick<DecisionRow, 'actionHash' | 'policyHash'>;

/** A receipt whose signing key was reported compromised since it was recorded does not verify. */
const verifies = sql<boolean>`${decisions.receiptVerified} and not (exists (select 1 from "revoked_keys")
  and (select true from "receipts" r join "revoked_keys" k on k."key_id" = r."key_id" and r."signed_at" >= k."since"
    where r."id" = ${decisions.receiptId}) is not null)`;
const columns = { ...getTableColumns(decisions), receiptVerified: verifies };

export function decisionQueries(db: PgDatabase<PgQueryResultHKT>) {
  const byId = db
    .select(columns)
    .from(decisions)
    .where(eq(decisions.decisionId, sql.placeholder('id')))
    .prepare('decision_by_id');
  const newest = db
    .select(columns)
    .from(decisions)
    .orderBy(desc(decisions.createdAt), desc(decisions.decisionId))
    .limit(sql.placeholder('limit'))
    .prepare('decisions_newest');
  return {
    async find(id: string): Promise<DecisionRecord | null> {
      const [row] = await byId.execute({ id });
      if (row === undefined) return null;
      const { actionHash, policyHash } = row;
      return { ...summary(row), actionHash, policyHash };
    },
    /** Newest first. */
    async recent(limit: number): Promise<readonly DecisionSummary[]> {
      return (await newest.execute({ limit })).map(summary);
    },
  };
}

function summary(row: DecisionRow): DecisionSummary {
  const { decisionId, recommendation, confidence, blockingIssues, warnings, reasons, facts } = row;
  const { outcomeStatus: status, jobId, receiptId, receiptVerified } = row;
  const { responseStatus, errorCategory, attempts } = row;
  return {
    decisionId,
    recommendation,
    confidence,
    blockingIssues,
    warnings,
    reasons,
    facts,
    createdAt: row.createdAt,
    expiresAt: row.expiresAt,
    outcome: { status, jobId, receiptId, receiptVerified, responseStatus, errorCategory, attempts },
  };
}
