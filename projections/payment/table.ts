// The payment model: payments that are open, charges that no comparison with the chain has confirmed, refusals that the chain
// is asked about once more, and the sums of all payments. It decides nothing: the reconciler takes its candidates from it, and
// reads their streams. How events change the rows is the ledger's fold (src/usecases/process/fold-ledger.ts).
import { bigint, index, jsonb, pgTable, text } from 'drizzle-orm/pg-core';
import type { LedgerEntry, MoneyPaid } from '#src/domain/payment/ledger.ts';

const account = () => ({
  network: text().notNull(),
  asset: text().notNull(),
  payee: text().notNull(),
});

export const openPayments = pgTable(
  'open_payments',
  {
    /** The payment's. */
    stream: text().primaryKey(),
    entry: jsonb().$type<LedgerEntry>().notNull(),
    reservedAt: text('reserved_at').notNull(),
    position: text().notNull(),
  },
  (table) => [index('open_payments_oldest').on(table.reservedAt)],
);

export const unconfirmedCharges = pgTable(
  'unconfirmed_charges',
  {
    /** The payment's. */
    stream: text().primaryKey(),
    ...account(),
    /** Atomic units, decimal. */
    amount: text().notNull(),
    /** Unix ms. */
    settledAt: bigint('settled_at', { mode: 'number' }).notNull(),
    validBefore: text('valid_before').notNull(),
    position: text().notNull(),
  },
  (table) => [index('unconfirmed_charges_oldest').on(table.settledAt)],
);

export const refusedPayments = pgTable(
  'refused_payments',
  {
    /** The payment's. */
    stream: text().primaryKey(),
    ...account(),
    validBefore: text('valid_before').notNull(),
    /** The same, RFC 3339. */
    endsAt: text('ends_at').notNull(),
    position: text().notNull(),
  },
  (table) => [index('refused_payments_ends').on(table.endsAt)],
);

/** Jobs with an open payment, and running jobs that are paid. */
export const paidJobs = pgTable('paid_jobs', {
  jobId: text('job_id').primaryKey(),
  /** Of its open payment. */
  stream: text(),
  paid: jsonb().$type<MoneyPaid>(),
  position: text().notNull(),
});

/** Atomic units, decimal: they may be more than a bigint holds. */
export const paymentSums = pgTable('payment_sums', {
  /** Network and asset. */
  id: text().primaryKey(),
  network: text().notNull(),
  asset: text().notNull(),
  charged: text().notNull(),
  served: text().notNull(),
  refunded: text().notNull(),
  open: text().notNull(),
  missing: text().notNull(),
  corrected: text().notNull(),
  unconfirmed: text().notNull(),
  position: text().notNull(),
});

/** What the comparisons of an account with the chain add up to. */
export const chainBooks = pgTable('chain_books', {
  /** The account's key. */
  id: text().primaryKey(),
  ...account(),
  fromBlock: bigint('from_block', { mode: 'number' }).notNull(),
  toBlock: bigint('to_block', { mode: 'number' }).notNull(),
  blockHash: text('block_hash').notNull(),
  blockTime: text('block_time').notNull(),
  /** Sums in atomic units, decimal. */
  received: text().notNull(),
  unattributed: text().notNull(),
  position: text().notNull(),
});

type RowOf<T extends { readonly $inferSelect: object }> = Omit<T['$inferSelect'], 'position'>;
export type OpenPaymentRow = RowOf<typeof openPayments>;
export type UnconfirmedChargeRow = RowOf<typeof unconfirmedCharges>;
export type RefusedPaymentRow = RowOf<typeof refusedPayments>;
export type PaidJobRow = RowOf<typeof paidJobs>;
export type PaymentSumsRow = RowOf<typeof paymentSums>;
export type ChainBooksRow = RowOf<typeof chainBooks>;
