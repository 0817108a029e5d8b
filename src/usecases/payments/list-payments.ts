// The payments of a log: those that are open, and all.
import {
  evolveEntry,
  type Ledger,
  type LedgerEntry,
  NO_ENTRY,
  openState,
  type PaymentState,
  paymentState,
} from '#src/domain/payment/ledger.ts';
import type { Clock } from '#src/ports/clock.ts';
import type { EventLog } from '#src/ports/event-log.ts';
import { standingRounds } from '#src/usecases/process/fold-ledger.ts';
import { paymentHistories } from './payment-histories.ts';

/** Open payments, the longest open first. `nowMs`: Unix ms. */
export function openPaymentRows({ entries }: Pick<Ledger, 'entries'>, nowMs: number): readonly PaymentRow[] {
  const rows: PaymentRow[] = [];
  for (const [id, entry] of entries) {
    const row = openState(entry, nowMs) === null ? null : paymentRow(id, entry, nowMs);
    if (row !== null) rows.push(row);
  }
  return rows.sort((a, b) => (a.since < b.since ? -1 : a.since > b.since ? 1 : 0));
}

/** Every payment, in the order of their first reservations. See `paymentHistories`. */
export async function* listAllPayments({
  log,
  clock,
}: {
  readonly log: EventLog;
  readonly clock: Pick<Clock, 'now'>;
}): AsyncGenerator<PaymentRow> {
  for await (const { id, events } of paymentHistories(log)) {
    const row = paymentRow(id, events.reduce(evolveEntry, NO_ENTRY), clock.now());
    if (row !== null) yield row;
  }
}

// ── what an operator sees of one payment ────────────────────────────────────────────────────────────

export type PaymentRow = {
  /** Name of the payment's stream. */
  readonly id: string;
  readonly state: PaymentState;
  readonly payer: string;
  /** CAIP-2. */
  readonly network: string;
  readonly asset: string;
  /** Atomic units. */
  readonly amount: string;
  readonly nonce: string;
  /** Unix seconds, decimal. */
  readonly validBefore: string;
  /** Of the charge; null: none yet, or its hash could not be determined. */
  readonly transaction: string | null;
  /** null: it is not refunded. */
  readonly refundTransaction: string | null;
  readonly jobId: string;
  /** Time of the event that led to the state; the other times are of these events, null where there is none. */
  readonly since: string;
  readonly reservedAt: string;
  readonly settledAt: string | null;
  readonly refundBegunAt: string | null;
  readonly refundedAt: string | null;
  /** The charge's transaction as it was recorded first, if the chain has the charge in another transaction; null otherwise. */
  readonly statedTransaction: string | null;
};

/** null: the payment was never reserved. `nowMs`: Unix ms. */
export function paymentRow(id: string, entry: LedgerEntry, nowMs: number): PaymentRow | null {
  const { payment, since } = entry;
  if (payment.status === 'absent') return null;
  const { payer, network, asset, amount, nonce, validBefore, jobId, reservedAt } = payment.reserved;
  const settled = 'settled' in payment ? payment.settled : null;
  const refunded = payment.status === 'refunded' ? payment.refunded : null;
  return {
    id,
    state: paymentState(entry, nowMs),
    payer,
    network,
    asset,
    amount,
    nonce,
    validBefore,
    transaction: settled?.transaction ?? null,
    refundTransaction: refunded?.transaction ?? null,
    jobId,
    since,
    reservedAt,
    settledAt: settled?.settledAt ?? null,
    refundBegunAt: payment.status === 'refunding' ? payment.begun.begunAt : null,
    refundedAt: refunded?.refundedAt ?? null,
    statedTransaction: settled?.stated?.transaction ?? null,
  };
}

/** What a payment is looked for by; absent: by anything. `claimOf`: name of the stream of the key, for one payer. */
export type Wanted = {
  readonly payer?: string | undefined;
  readonly transaction?: string | undefined;
  readonly job?: string | undefined;
  readonly claimOf?: ((payer: string) => string) | undefined;
};

/** Whether a row is one that is looked for. */
export function selecting(
  log: EventLog,
  { payer, transaction, job, claimOf }: Wanted,
): (row: PaymentRow | TransferRow) => Promise<boolean> {
  const paidWith = new Map<string, Promise<ReadonlySet<unknown>>>();
  async function readPayments(claim: string): Promise<ReadonlySet<unknown>> {
    return new Set((await log.readStream(claim)).map(({ data }) => data.paymentStream));
  }
  async function hasKey(row: PaymentRow | TransferRow): Promise<boolean> {
    if (claimOf === undefined) return true;
    if (row.payer === null || row.id === null) return false;
    const known = paidWith.get(row.payer) ?? readPayments(claimOf(row.payer));
    paidWith.set(row.payer, known);
    return (await known).has(row.id);
  }
  const isSame = (wanted: string | undefined, ...found: readonly (string | null)[]): boolean =>
    wanted === undefined || found.some((one) => one?.toLowerCase() === wanted.toLowerCase());
  return async (row) =>
    isSame(payer, row.payer) &&
    isSame(job, row.jobId) &&
    isSame(transaction, row.transaction, row.statedTransaction, row.refundTransaction) &&
    hasKey(row);
}

/** `since` inclusive, `until` exclusive: RFC 3339, UTC; null: no limit. */
export type Period = { readonly since: string | null; readonly until: string | null };

/** Whether the payment was charged in the period, or reserved if it was never charged. */
export const isWithinPeriod = ({ settledAt, reservedAt }: PaymentRow, period: Period): boolean =>
  isIn(settledAt ?? reservedAt, period);

/** `time`: RFC 3339, UTC. */
export function isIn(time: string, { since, until }: Period): boolean {
  return (since === null || time >= since) && (until === null || time < until);
}

// ── transfers to the payee that pay for no payment ──────────────────────────────────────────────────

/**
 * As a row among payments, `null` where it has no such member. `payer` and `transaction` null: more transfers of one block
 * than an event lists; `amount` is their sum. `since`: time of the last block of the round that found it.
 */
export type TransferRow = Readonly<Record<Exclude<keyof PaymentRow, 'state'>, string | null>> & {
  readonly state: 'unattributed';
  readonly since: string;
  /** Atomic units. */
  readonly amount: string;
  readonly transfers: number;
  readonly block: number;
};

const NO_PAYMENT = {
  id: null,
  state: 'unattributed',
  payer: null,
  nonce: null,
  validBefore: null,
  refundTransaction: null,
  jobId: null,
  reservedAt: null,
  settledAt: null,
  refundBegunAt: null,
  refundedAt: null,
  statedTransaction: null,
} as const;

/** The newest first, for each payee and asset. Throws for an event that it cannot read. */
export async function* unattributedTransfers(
  log: EventLog,
  { comparisons }: Ledger,
): AsyncGenerator<TransferRow> {
  for (const books of comparisons.values()) {
    const { network, asset } = books;
    for await (const round of standingRounds(log, books))
      for (const { sender: payer, ...row } of round.unattributed.toReversed())
        yield { ...NO_PAYMENT, network, asset, payer, ...row, since: round.blockTime };
  }
}
