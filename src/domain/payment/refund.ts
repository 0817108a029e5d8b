// Refunds: a charge that is returned in full to its payer, once.
import type { EventOf } from '../events.ts';
import type { Job } from '../job/state.ts';
import type { PaymentReserved } from './events.ts';
import type { Payment } from './state.ts';

export type Refund = {
  /** `0x` and 64 hex digits, lower case. */
  readonly transaction: string;
  /** `chain`: the transfer was found there. */
  readonly evidence: 'chain' | 'operator';
  /** RFC 3339, UTC. */
  readonly at: string;
};

/** `not_charged`: it is not settled. `job_running`: its call may still succeed. */
export type RefundRefusal = 'not_charged' | 'already_refunded' | 'job_running' | 'charge_transaction';

/** The event that records the refund of a payment, or why there is none. `job`: the job that it paid for. */
export function refundPayment(
  payment: Payment,
  job: Job['status'],
  { transaction, evidence, at }: Refund,
): EventOf<'PaymentRefunded'> | { readonly refused: RefundRefusal } {
  if (payment.status === 'refunded') return { refused: 'already_refunded' };
  if (payment.status !== 'settled') return { refused: 'not_charged' };
  if (job === 'running') return { refused: 'job_running' };
  if (payment.settled.transaction === transaction) return { refused: 'charge_transaction' };
  const { jobId, network, asset, amount, payer } = payment.reserved;
  return {
    type: 'PaymentRefunded',
    data: { v: 2, jobId, network, asset, amount, payer, transaction, evidence, refundedAt: at, sender: null },
  };
}

/** The transfer that was found on the chain. */
export type FoundTransfer =
  /** `amount`: what the transaction moved to the payer. `atSeconds`: the time of its block (Unix). */
  | { readonly outcome: 'found'; readonly amount: bigint; readonly atSeconds: number }
  | { readonly outcome: 'missing' | 'failed' | 'unavailable' };

export type TransferRefusal =
  | 'transfer_missing'
  | 'transfer_failed'
  | 'transfer_too_small'
  | 'transfer_before_charge'
  | 'chain_unavailable';

/** null: the transfer covers the amount, and is not older than the payment. */
export function judgeTransfer(
  found: FoundTransfer,
  { amount, reservedAt }: Pick<PaymentReserved, 'amount' | 'reservedAt'>,
): TransferRefusal | null {
  switch (found.outcome) {
    case 'found':
      if (found.amount < BigInt(amount)) return 'transfer_too_small';
      return found.atSeconds < Math.floor(Date.parse(reservedAt) / 1000) ? 'transfer_before_charge' : null;
    case 'missing':
      return 'transfer_missing';
    case 'failed':
      return 'transfer_failed';
    case 'unavailable':
      return 'chain_unavailable';
    default:
      return found satisfies never;
  }
}
