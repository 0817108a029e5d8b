import type { DomainEvent } from '#src/domain/events.ts';
import type { RowChange } from '#src/lib/row-change.ts';
import type { ReceiptRow, RevokedKeyRow } from './table.ts';

export type ReceiptChange = RowChange<'receipts', ReceiptRow> | RowChange<'revoked_keys', RevokedKeyRow>;

/** `receiptVerified`: the verdict on this very event, found before. */
export function projectReceipt(
  event: DomainEvent,
  facts: { readonly receiptVerified: boolean },
): readonly ReceiptChange[] {
  switch (event.type) {
    case 'ReceiptSigned': {
      const { receiptId, jobId, decisionId, keyId, jws, signedAt } = event.data;
      const verified = facts.receiptVerified;
      const row: ReceiptRow = { id: receiptId, jobId, decisionId, keyId, jws, verified, signedAt };
      // The first receipt of an id stays: another one under the same id is a finding for the audit.
      return [{ table: 'receipts', key: receiptId, apply: (stored) => stored ?? row }];
    }
    case 'SigningKeyRetired': {
      const { keyId, compromisedAt } = event.data;
      if (compromisedAt === null) return [];
      const since = compromisedAt.slice(0, 19);
      // A second report may date the compromise earlier, never later.
      const apply = (row: RevokedKeyRow | null) =>
        row !== null && row.since <= since ? row : { keyId, since };
      return [{ table: 'revoked_keys', key: keyId, apply }];
    }
    default:
      return [];
  }
}
