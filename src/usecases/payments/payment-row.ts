// What an operator sees of one payment.
import { type LedgerEntry, type PaymentState, paymentState } from '#src/domain/payment/ledger.ts';

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

/** `since` inclusive, `until` exclusive: RFC 3339, UTC; null: no limit. */
export type Period = { readonly since: string | null; readonly until: string | null };

/** Whether the payment was charged in the period, or reserved if it was never charged. */
export const isWithin = ({ settledAt, reservedAt }: PaymentRow, period: Period): boolean =>
  isIn(settledAt ?? reservedAt, period);

/** `time`: RFC 3339, UTC. */
export function isIn(time: string, { since, until }: Period): boolean {
  return (since === null || time >= since) && (until === null || time < until);
}
