import type { DomainEvent, EventOf } from '#src/domain/events.ts';
import { entryOf } from '#src/domain/payment/ledger.ts';
import type { RowChange } from '#src/lib/row-change.ts';
import type { TrustMinuteRow, TrustOpenPaymentRow, TrustTotalsRow } from './table.ts';

export type TrustChange =
  | RowChange<'trust_totals', TrustTotalsRow>
  | RowChange<'trust_open_payments', TrustOpenPaymentRow>
  | RowChange<'trust_minutes', TrustMinuteRow>;

/** `receiptVerified`: the verdict on this very event, found before. */
export function projectTrust(
  event: DomainEvent,
  facts: { readonly receiptVerified: boolean },
): readonly TrustChange[] {
  if (event.type === 'ReceiptSigned') return receiptSigned(event.data, facts.receiptVerified);
  if (event.type === 'PaymentMissing') return paymentMissing(event.data);
  // A missing charge is taken back. Without one, this changes nothing.
  if (event.type === 'PaymentRejected')
    return [changeOpen(event.data.jobId, (row) => (row?.missing ? null : row))];
  const entry = entryOf(event);
  if (entry === null || !('jobId' in event.data)) return [];
  const { jobId } = event.data;
  switch (entry) {
    case 'charged':
      return [
        changeTotals((row) => ({ ...row, charged: row.charged + 1 })),
        changeOpen(jobId, (row) => (row?.closed ? null : { jobId, missing: false, closed: false })),
      ];
    case 'refunded':
      return [changeTotals((row) => ({ ...row, refunded: row.refunded + 1 })), close(jobId)];
    case 'served':
      return [close(jobId)];
    default:
      return entry satisfies never;
  }
}

const paymentMissing = ({ jobId }: EventOf<'PaymentMissing'>['data']): readonly TrustChange[] => [
  changeTotals((row) => ({ ...row, charged: row.charged - 1 })),
  changeOpen(jobId, (row) => ({ jobId, missing: true, closed: row === null })),
];

const close = (jobId: string): TrustChange =>
  changeOpen(jobId, (row) => (row?.missing ? { ...row, closed: true } : null));

function receiptSigned(
  { keyId, signedAt }: EventOf<'ReceiptSigned'>['data'],
  isVerified: boolean,
): readonly TrustChange[] {
  if (!isVerified) return [changeTotals((row) => ({ ...row, receipts: row.receipts + 1 }))];
  const id = `${signedAt.slice(0, 16)} ${keyId}`;
  return [
    changeTotals((row) => {
      const latest = row.latestVerifiedAt;
      return {
        ...row,
        receipts: row.receipts + 1,
        verified: row.verified + 1,
        latestVerifiedAt: latest === null || signedAt > latest ? signedAt : latest,
      };
    }),
    { table: 'trust_minutes', key: id, apply: (row) => ({ id, keyId, verified: (row?.verified ?? 0) + 1 }) },
  ];
}

const NO_TOTALS: TrustTotalsRow = {
  id: 'all',
  receipts: 0,
  verified: 0,
  latestVerifiedAt: null,
  charged: 0,
  refunded: 0,
};

const changeTotals = (change: (row: TrustTotalsRow) => TrustTotalsRow): TrustChange => ({
  table: 'trust_totals',
  key: 'all',
  apply: (row) => change(row ?? NO_TOTALS),
});

const changeOpen = (
  key: string,
  apply: (row: TrustOpenPaymentRow | null) => TrustOpenPaymentRow | null,
): TrustChange => ({ table: 'trust_open_payments', key, apply });
