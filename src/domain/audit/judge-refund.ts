// Checks that no transfer refunds more than it moved, that each refund was claimed before it was recorded, and that no
// payment is refunded by two transactions.

import type { RefundClaimed, RefundTransfer } from '../events/refund.ts';
import type { EventOf } from '../events.ts';
import { type Allocation, evolveClaims, NO_CLAIMS, potKey, type RefundClaims } from '../payment/refund.ts';
import type { Payment } from '../payment/state.ts';
import { type Fault, fault } from './finding.ts';

/** The claims of a transaction as read so far. `moved`: amount of each transfer as stated first, in atomic units. */
export type RefundHistory = RefundClaims & {
  readonly transaction: string;
  readonly moved: Readonly<Record<string, string>>;
};

export const noRefunds = (transaction: string): RefundHistory => ({ ...NO_CLAIMS, transaction, moved: {} });

/** `paymentOf`: as the record has it before this event; null: no such stream. */
export function judgeClaim(
  history: RefundHistory,
  event: EventOf<'RefundClaimed'>,
  paymentOf: (stream: string) => Payment | null,
): { readonly history: RefundHistory; readonly faults: readonly Fault[] } {
  const { network, transfers, released } = event.data;
  const { allocations } = evolveClaims(history, event);
  const moved = { ...history.moved };
  const faults: Fault[] = [];
  const impossible = (message: string) => faults.push(fault('refund_event_impossible', message));
  for (const payment of released)
    if (!history.allocations.some((held) => held.payment === payment))
      impossible(`The claim releases ${payment}, for which the transaction was not claimed.`);
  for (const transfer of transfers) {
    const pot = potKey(transfer);
    const amount = moved[pot] ?? transfer.amount;
    moved[pot] = amount;
    if (amount !== transfer.amount)
      impossible(`An earlier claim states another amount for the transfer to ${transfer.payer}.`);
    const claimed = allocations
      .filter((each) => potKey(each) === pot)
      .reduce((sum, each) => sum + BigInt(each.amount), 0n);
    if (claimed > BigInt(amount)) {
      const message = `The refunds to ${transfer.payer} add up to ${claimed}, but the transfer moved ${amount}.`;
      faults.push(fault('refund_exceeds_transfer', message));
    }
    for (const refund of transfer.refunds) {
      if (allocations.filter(({ payment }) => payment === refund.payment).length > 1)
        impossible(`The transaction is claimed twice for the refund of ${refund.payment}.`);
      const found = mismatch(network, transfer, refund, paymentOf(refund.payment));
      if (found !== null) faults.push(found);
    }
  }
  return { history: { ...history, allocations, moved }, faults };
}

function mismatch(
  network: RefundClaimed['network'],
  { asset, payer }: RefundTransfer,
  { payment: stream, jobId, amount }: RefundTransfer['refunds'][number],
  payment: Payment | null,
): Fault | null {
  if (payment === null || payment.status === 'absent' || !('settled' in payment))
    return fault('payment_missing', `The claim is for ${stream}, which the log does not have as charged.`);
  const { reserved } = payment;
  const fields = [
    reserved.network === network ? null : 'network',
    reserved.asset.toLowerCase() === asset.toLowerCase() ? null : 'asset',
    reserved.payer.toLowerCase() === payer.toLowerCase() ? null : 'payer',
    reserved.amount === amount ? null : 'amount',
    reserved.jobId === jobId ? null : 'job',
  ].filter((field) => field !== null);
  return fields.length === 0
    ? null
    : fault('payment_mismatch', `The claim and the charge of ${stream} differ in ${fields.join(', ')}.`);
}

/** null: the transaction was claimed for this refund. Version 1 had no claims. */
export function unclaimedFault(
  stream: string,
  { data }: EventOf<'PaymentRefunded'>,
  history: RefundHistory | null,
): Fault | null {
  const { sender, asset, payer, amount, transaction } = data;
  if (sender === null) return null;
  const pot = potKey({ asset, sender, payer });
  const isClaimed = history?.allocations.some(
    (each) => each.payment === stream && each.amount === amount && potKey(each) === pot,
  );
  return isClaimed
    ? null
    : fault(
        'refund_unclaimed',
        `Transaction ${transaction} was not claimed for the refund of ${stream} before it.`,
      );
}

/** What is left of a claim at the end of the record: it is recorded, to be recorded, or void. */
export function claimEnd(
  { transaction }: RefundHistory,
  { payment: stream }: Allocation,
  payment: Payment | null,
): 'recorded' | 'unrecorded' | Fault {
  if (payment?.status !== 'refunded') return 'unrecorded';
  if (payment.refunded.transaction === transaction) return 'recorded';
  return twice(stream, transaction, payment.refunded.transaction);
}

export function twice(stream: string, transaction: string, other: string): Fault {
  const message = `Transactions ${transaction} and ${other} are both claimed for the refund of ${stream}, unless the command that completes the former has not ended.`;
  return fault('payment_claimed_twice', message);
}
