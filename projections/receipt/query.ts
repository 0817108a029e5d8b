import { sql } from 'drizzle-orm';
import type { PgDatabase, PgQueryResultHKT } from 'drizzle-orm/pg-core';
import { payloadOf, type ReceiptPayload, shownSignature } from '#src/domain/receipt/payload.ts';
import { batched } from '#src/lib/batched.ts';
import { receipts } from './table.ts';

/** `GET /api/receipts/{id}` without its links, and the job it is of. */
export type ReceiptRecord = {
  readonly id: string;
  readonly jobId: string;
  readonly decisionId: string | null;
  readonly keyId: string;
  /** As signed; null where it is of no version that this service knows. */
  readonly payload: ReceiptPayload | null;
  readonly jws: string;
  /** `ed25519:` and the JWS's signature part. */
  readonly signature: string;
  /** Verified when it was recorded; the verifier says what holds now. */
  readonly verified: boolean;
  readonly signedAt: string;
};

export function receiptQueries(db: PgDatabase<PgQueryResultHKT>) {
  const byId = db
    .select()
    .from(receipts)
    .where(
      sql`${receipts.id} = any(array(select json_array_elements_text(${sql.placeholder('ids')}::text::json)))`,
    )
    .prepare('receipts_by_id');
  const rowOf = batched(async (ids) => {
    const rows = await byId.execute({ ids: JSON.stringify(ids) });
    return new Map(rows.map((row) => [row.id, row]));
  });
  return {
    async find(id: string): Promise<ReceiptRecord | null> {
      const row = await rowOf(id);
      if (row === null) return null;
      return {
        id: row.id,
        jobId: row.jobId,
        decisionId: row.decisionId,
        keyId: row.keyId,
        payload: payloadOf(row.jws),
        jws: row.jws,
        signature: shownSignature(row.jws),
        verified: row.verified,
        signedAt: row.signedAt,
      };
    },
  };
}
