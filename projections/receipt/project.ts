import type { DomainEvent } from '#src/domain/events.ts';
import { payloadOf } from '#src/domain/receipt/payload.ts';
import type { ReceiptRow } from './table.ts';

export type ReceiptChange = {
  readonly table: 'receipts';
  readonly key: string;
  apply(row: ReceiptRow | null): ReceiptRow | null;
};

/** `receiptVerified`: the verdict on this very event, found before. */
export function projectReceipt(
  event: DomainEvent,
  facts: { readonly receiptVerified: boolean },
): readonly ReceiptChange[] {
  if (event.type !== 'ReceiptSigned') return [];
  const { receiptId, jobId, decisionId, keyId, jws, signedAt } = event.data;
  const row: ReceiptRow = {
    id: receiptId,
    jobId,
    decisionId,
    keyId,
    jws,
    verified: facts.receiptVerified,
    issuedAt: issuedAt(jws),
    signedAt,
  };
  // The first receipt of an id stays: another one under the same id is a finding for the audit.
  return [{ table: 'receipts', key: receiptId, apply: (stored) => stored ?? row }];
}

function issuedAt(jws: string): number | null {
  const payload = payloadOf(jws);
  return payload && Math.min(payload.iat, Number.MAX_SAFE_INTEGER);
}
