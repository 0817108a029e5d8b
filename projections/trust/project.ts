import type { DomainEvent } from '#src/domain/events.ts';
import type { TrustMinuteRow, TrustTotalsRow } from './table.ts';

export type TrustChange =
  | {
      readonly table: 'trust_totals';
      readonly key: string;
      apply(row: TrustTotalsRow | null): TrustTotalsRow | null;
    }
  | {
      readonly table: 'trust_minutes';
      readonly key: string;
      apply(row: TrustMinuteRow | null): TrustMinuteRow | null;
    };

/** `receiptVerified`: the verdict on this very event, found before. */
export function projectTrust(
  event: DomainEvent,
  facts: { readonly receiptVerified: boolean },
): readonly TrustChange[] {
  if (event.type !== 'ReceiptSigned') return [];
  const { signedAt } = event.data;
  const minute = signedAt.slice(0, 16);
  const verified = facts.receiptVerified ? 1 : 0;
  return [
    {
      table: 'trust_totals',
      key: 'all',
      apply: (row) => {
        const before = row ?? { id: 'all', receipts: 0, verified: 0, latestVerifiedAt: null };
        const latest = before.latestVerifiedAt;
        return {
          id: 'all',
          receipts: before.receipts + 1,
          verified: before.verified + verified,
          latestVerifiedAt: verified === 1 && (latest === null || signedAt > latest) ? signedAt : latest,
        };
      },
    },
    {
      table: 'trust_minutes',
      key: minute,
      apply: (row) => ({
        minute,
        receipts: (row?.receipts ?? 0) + 1,
        verified: (row?.verified ?? 0) + verified,
      }),
    },
  ];
}
