import { sql } from 'drizzle-orm';
import type { PgDatabase, PgQueryResultHKT } from 'drizzle-orm/pg-core';
import type { PaymentFacts } from '#src/domain/event-fields.ts';
import { batched } from '#src/lib/batched.ts';
import { type JobRow, jobs } from './table.ts';

/** `GET /api/jobs/{id}` without its links. */
export type JobRecord = Omit<JobRow, 'attemptLog' | 'targetCommitment' | 'payment'> & {
  readonly type: 'webhook';
  readonly attemptLog: JobRow['attemptLog'];
  readonly target: { readonly scheme: 'https'; readonly commitment: string };
  /** true only where the last attempt answered 2xx. */
  readonly responseOk: boolean;
};

/** What verification compares with the receipt; the job's events come from the log. */
export type JobForVerification = Pick<
  JobRow,
  'receiptId' | 'status' | 'responseStatus' | 'method' | 'attempts' | 'decisionId' | 'targetCommitment'
> & { readonly jobId: string; readonly payment: PaymentFacts | null };

export function jobQueries(db: PgDatabase<PgQueryResultHKT>) {
  const byId = db
    .select()
    .from(jobs)
    .where(
      sql`${jobs.id} = any(array(select json_array_elements_text(${sql.placeholder('ids')}::text::json)))`,
    )
    .prepare('jobs_by_id');
  const rowOf = batched(async (ids) => {
    const rows = await byId.execute({ ids: JSON.stringify(ids) });
    return new Map(rows.map((row) => [row.id, row]));
  });
  return {
    async find(id: string): Promise<JobRecord | null> {
      const row = await rowOf(id);
      return row === null ? null : shown(row);
    },
    /** A job found is one that is retained. */
    async findForVerification(id: string): Promise<JobForVerification | null> {
      const row = await rowOf(id);
      return row && { ...row, jobId: row.id };
    },
  };
}

function shown(row: JobRow): JobRecord {
  return {
    id: row.id,
    type: 'webhook',
    status: row.status,
    method: row.method,
    mode: row.mode,
    attempts: row.attempts,
    attemptLog: row.attemptLog,
    target: { scheme: 'https', commitment: row.targetCommitment },
    requestHash: row.requestHash,
    responseStatus: row.responseStatus,
    responseOk: row.status === 'succeeded',
    responseHash: row.responseHash,
    errorCategory: row.errorCategory,
    decisionId: row.decisionId,
    receiptId: row.receiptId,
    refund: row.refund,
    createdAt: row.createdAt,
    updatedAt: row.updatedAt,
  };
}
