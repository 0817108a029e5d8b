// Refunds: a charge that is returned in full to its payer, once.
import type { EventOf } from '../events.ts';
import type { Job } from '../job/state.ts';
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
export type RefundRefusal = 'not_charged' | 'already_refunded' | 'job_running';

/** The event that records the refund of a payment, or why there is none. `job`: the job that it paid for. */
export function refundPayment(
  payment: Payment,
  job: Job['status'],
  { transaction, evidence, at }: Refund,
): EventOf<'PaymentRefunded'> | { readonly refused: RefundRefusal } {
  if (payment.status === 'refunded') return { refused: 'already_refunded' };
  if (payment.status !== 'settled') return { refused: 'not_charged' };
  if (job === 'running') return { refused: 'job_running' };
  const { jobId, network, asset, amount, payer } = payment.reserved;
  return {
    type: 'PaymentRefunded',
    data: { v: 1, jobId, network, asset, amount, payer, transaction, evidence, refundedAt: at },
  };
}

/** `amount`: what the transaction moved to the payer, in atomic units. */
export type FoundTransfer =
  | { readonly amount: bigint }
  | { readonly refused: 'transfer_missing' | 'transfer_failed' | 'chain_unavailable' };
