import type {
  LedgerEntry,
  PaidJob,
  RefusedPayment,
  Sums,
  UnconfirmedCharge,
} from '#src/domain/payment/ledger.ts';
import type { ChainBooks } from '#src/domain/payment/reconciliation.ts';
import { iso } from '#src/lib/iso.ts';
import type {
  ChainBooksRow,
  OpenPaymentRow,
  PaidJobRow,
  PaymentSumsRow,
  RefusedPaymentRow,
  UnconfirmedChargeRow,
} from './table.ts';

type Row = Readonly<Record<string, unknown>>;

/** A row as the ledger's fold leaves it; null: it is deleted. */
export type LedgerRow = { readonly table: string; readonly key: string; readonly row: Row | null };

/** The ledger is folded before, over the rows that the event changes. */
export function projectPayment(_: unknown, { ledger }: { readonly ledger: readonly LedgerRow[] }) {
  return ledger.map(({ table, key, row }) => ({ table, key, apply: () => row }));
}

/** A table of the ledger as rows of the database. */
export type Shape<V, R extends Row> = {
  readonly table: string;
  toRow(key: string, value: V): R;
  fromRow(row: R): V;
};

export const OPEN_PAYMENTS: Shape<LedgerEntry, OpenPaymentRow> = {
  table: 'open_payments',
  toRow: (stream, entry) => {
    const { payment } = entry;
    if (payment.status === 'absent') return { stream, entry, reservedAt: '' };
    // Only the event log has nonces: the rows name the payment by its stream.
    const reserved = { ...payment.reserved, nonce: '' };
    return {
      stream,
      entry: { ...entry, payment: { ...payment, reserved } },
      reservedAt: reserved.reservedAt,
    };
  },
  fromRow: ({ entry }) => entry,
};

export const UNCONFIRMED_CHARGES: Shape<UnconfirmedCharge, UnconfirmedChargeRow> = {
  table: 'unconfirmed_charges',
  toRow: (stream, { account: { network, asset, payee }, amount, settledAt, validBefore }) => ({
    stream,
    network,
    asset,
    payee,
    amount: String(amount),
    // A time that names no real day: it is due at once.
    settledAt: Number.isNaN(settledAt) ? 0 : settledAt,
    validBefore,
  }),
  fromRow: ({ network, asset, payee, amount, settledAt, validBefore }) => ({
    account: { network, asset, payee },
    amount: BigInt(amount),
    settledAt,
    validBefore,
  }),
};

/** The last second of the year 9999. */
const LATEST_MS = 253_402_300_799_000;

export const REFUSED_PAYMENTS: Shape<RefusedPayment, RefusedPaymentRow> = {
  table: 'refused_payments',
  toRow: (stream, { account: { network, asset, payee }, validBefore }) => ({
    stream,
    network,
    asset,
    payee,
    validBefore,
    endsAt: iso(Math.min(Number(validBefore) * 1000, LATEST_MS)),
  }),
  fromRow: ({ network, asset, payee, validBefore }) => ({ account: { network, asset, payee }, validBefore }),
};

export const PAID_JOBS: Shape<PaidJob, PaidJobRow> = {
  table: 'paid_jobs',
  toRow: (jobId, { stream, paid }) => ({ jobId, stream, paid }),
  fromRow: ({ stream, paid }) => ({ stream, paid }),
};

export const PAYMENT_SUMS: Shape<Sums, PaymentSumsRow> = {
  table: 'payment_sums',
  toRow: (id, { network, asset, charged, served, refunded, open, missing, corrected, unconfirmed }) => ({
    id,
    network,
    asset,
    charged: String(charged),
    served: String(served),
    refunded: String(refunded),
    open: String(open),
    missing: String(missing),
    corrected: String(corrected),
    unconfirmed: String(unconfirmed),
  }),
  fromRow: ({ network, asset, charged, served, refunded, open, missing, corrected, unconfirmed }) => ({
    network,
    asset,
    charged: BigInt(charged),
    served: BigInt(served),
    refunded: BigInt(refunded),
    open: BigInt(open),
    missing: BigInt(missing),
    corrected: BigInt(corrected),
    unconfirmed: BigInt(unconfirmed),
  }),
};

export const CHAIN_BOOKS: Shape<ChainBooks, ChainBooksRow> = {
  table: 'chain_books',
  toRow: (id, { received, unattributed, ...books }) => ({
    id,
    ...books,
    received: String(received),
    unattributed: String(unattributed),
  }),
  fromRow: ({ network, asset, payee, fromBlock, toBlock, blockHash, blockTime, received, unattributed }) => ({
    network,
    asset,
    payee,
    fromBlock,
    toBlock,
    blockHash,
    blockTime,
    received: BigInt(received),
    unattributed: BigInt(unattributed),
  }),
};
