import type { DomainEvent, EventOf } from '#src/domain/events.ts';
import { boughtNothing } from '#src/domain/payment/ledger.ts';
import type { TrustMinuteRow, TrustOpenPaymentRow, TrustTotalsRow } from './table.ts';

export type TrustChange =
  | {
      readonly table: 'trust_totals';
      readonly key: string;
      apply(row: TrustTotalsRow | null): TrustTotalsRow | null;
    }
  | {
      readonly table: 'trust_open_payments';
      readonly key: string;
      apply(row: TrustOpenPaymentRow | null): TrustOpenPaymentRow | null;
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
  switch (event.type) {
    case 'PaymentSettled': {
      const { jobId } = event.data;
      return [
        changeTotals((row) => ({ ...row, charged: row.charged + 1 })),
        openPayment(jobId, () => ({ jobId })),
      ];
    }
    case 'PaymentRefunded':
      return [
        changeTotals((row) => ({ ...row, refunded: row.refunded + 1 })),
        openPayment(event.data.jobId, () => null),
      ];
    case 'JobCompleted': {
      const { jobId, errorCategory } = event.data;
      return boughtNothing(errorCategory) ? [] : [openPayment(jobId, () => null)];
    }
    case 'ReceiptSigned':
      return receiptSigned(event.data, facts.receiptVerified);
    default:
      return [];
  }
}

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

const openPayment = (key: string, apply: () => TrustOpenPaymentRow | null): TrustChange => ({
  table: 'trust_open_payments',
  key,
  apply,
});
