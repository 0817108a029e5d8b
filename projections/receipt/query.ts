import { sql } from 'drizzle-orm';
import type { PgDatabase, PgQueryResultHKT } from 'drizzle-orm/pg-core';
import { type ReceiptRecord, receiptRecord } from '#src/domain/receipt/record.ts';
import { batched } from '#src/lib/batched.ts';
import { receipts } from './table.ts';

/** `verified`: when it was recorded; the verifier says what holds now. */
export type RecordedReceipt = ReceiptRecord & { readonly verified: boolean };

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
    async find(id: string): Promise<RecordedReceipt | null> {
      const row = await rowOf(id);
      return row && { ...receiptRecord({ ...row, receiptId: row.id }), verified: row.verified };
    },
  };
}
