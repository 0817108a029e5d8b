// Checks the comparisons with the chain: against the rounds before them and the payments that they name, and, where a node
// can be queried, against the chain.
import type { ChainReconciled } from '../events/payment.ts';
import type { Sums } from '../payment/ledger.ts';
import {
  type ChainBlock,
  type ChainTransfer,
  hashOfStream,
  isCharged,
  isDue,
  streamOfTransfer,
  sumOf,
} from '../payment/reconciliation.ts';
import type { Transfer } from '../payment/refund.ts';
import type { ChainFinding, Payment } from '../payment/state.ts';
import { type Fault, fault } from './finding.ts';

/** What has to follow the rounds that stand before it. null: there is none. */
export type RoundBefore = Pick<ChainReconciled, 'toBlock'> | null;

/** `replaced`: first block of the rounds that it replaces; null: it replaces none. */
export function orderFault(
  round: ChainReconciled,
  before: RoundBefore,
  replaced: number | null,
): Fault | null {
  const impossible = (message: string): Fault => fault('chain_event_impossible', message);
  const { fromBlock, toBlock } = round;
  if (toBlock < fromBlock)
    return impossible(`The comparison ends with block ${toBlock}, before it begins with block ${fromBlock}.`);
  const begins = `The comparison begins with block ${fromBlock}`;
  if (replaced !== null && fromBlock > replaced)
    return impossible(`${begins}, inside an earlier comparison that begins with block ${replaced}.`);
  if (before === null || before.toBlock === fromBlock - 1) return null;
  return impossible(`${begins}, but the comparison before it ends with block ${before.toBlock}.`);
}

/** `isTaken`: another round that stands has confirmed it. */
export type ConfirmedPayment = {
  readonly hash: string;
  readonly payment: Payment;
  readonly isTaken: boolean;
};

/** Contradictions between a round and the payments that it confirms: as the record has them before the event. */
export function roundFaults(
  round: ChainReconciled,
  confirmed: readonly ConfirmedPayment[],
): readonly Fault[] {
  const faults: Fault[] = [];
  const mismatch = (message: string) => faults.push(fault('chain_event_mismatch', message));
  let paid = 0n;
  for (const { hash, payment, isTaken } of confirmed) {
    const confirms = `The comparison confirms payment-${hash}`;
    if (payment.status === 'absent') {
      mismatch(`${confirms}, which is not in the log.`);
      continue;
    }
    const { amount, network, asset, payTo } = payment.reserved;
    paid += BigInt(amount);
    if (isTaken) mismatch(`${confirms}, which an earlier comparison has confirmed.`);
    if (!isCharged(payment)) mismatch(`${confirms}, which is not charged.`);
    const isOf = network === round.network && asset === round.asset && payTo === round.payee;
    if (!isOf) mismatch(`${confirms}, which is of another network, asset or payee.`);
  }
  const received = paid + sumOf(round.unattributed);
  if (received !== BigInt(round.received))
    mismatch(`The comparison states ${round.received} units, but its transfers add up to ${received}.`);
  const transfers = confirmed.length + round.unattributed.reduce((sum, row) => sum + row.transfers, 0);
  if (transfers !== round.transfers)
    mismatch(`The comparison counts ${round.transfers} transfers, but names ${transfers}.`);
  return faults;
}

/** `received`, `unattributed`: of the rounds that stand. null: the books have what the chain has, or more than is compared. */
export function receivedFault(
  { network, asset, charged, missing }: Sums,
  received: bigint,
  unattributed: bigint,
): Fault | null {
  if (received <= charged - missing + unattributed) return null;
  const message = `The comparisons found ${received} units of ${asset} received on ${network}, more than the books have: charged ${charged} - missing ${missing} + unattributed ${unattributed}.`;
  return fault('books_unbalanced', message);
}

// ── against the chain ───────────────────────────────────────────────────────────────────────────────────

export function blockFault(round: ChainReconciled, block: ChainBlock | null): Fault | null {
  if (block?.hash === round.blockHash) return null;
  const found = block === null ? 'no such block' : `the hash ${block.hash}`;
  const message = `The comparison states the hash ${round.blockHash} for block ${round.toBlock}, but the chain has ${found}.`;
  return fault('chain_block_mismatch', message);
}

/** `transfers`: those in the round's blocks. */
export function transfersFault(round: ChainReconciled, transfers: readonly ChainTransfer[]): Fault | null {
  const mismatch = (message: string): Fault => fault('chain_transfers_mismatch', message);
  const blocks = `blocks ${round.fromBlock} to ${round.toBlock}`;
  const received = transfers.reduce((sum, { amount }) => sum + amount, 0n);
  if (received !== BigInt(round.received) || transfers.length !== round.transfers)
    return mismatch(
      `In ${blocks} the chain has ${received} units in ${transfers.length} transfers, but the comparison states ${round.received} units in ${round.transfers}.`,
    );
  const streams = transfers.map((transfer) => streamOfTransfer(round, transfer));
  const paid = new Set(streams.flatMap((stream) => (stream === null ? [] : [hashOfStream(stream)])));
  const other = round.confirmed.find((hash) => !paid.has(hash));
  return other === undefined
    ? null
    : mismatch(`The comparison confirms payment-${other}, but the chain has no transfer of it in ${blocks}.`);
}

/**
 * Confirmed charges whose transfer is in another transaction than the record has at its end. `recordedOf`: that transaction,
 * by the hash in the name of the payment's stream; null: none is recorded.
 */
export function chargeFaults(
  round: ChainReconciled,
  transfers: readonly ChainTransfer[],
  recordedOf: (hash: string) => string | null,
): readonly Fault[] {
  const confirmed = new Set(round.confirmed);
  return transfers.flatMap((transfer) => {
    const stream = streamOfTransfer(round, transfer);
    const hash = stream === null ? '' : hashOfStream(stream);
    const recorded = confirmed.has(hash) ? recordedOf(hash) : null;
    if (recorded === null || recorded.toLowerCase() === transfer.transaction) return [];
    const message = `The charge of payment-${hash} is recorded with transaction ${recorded}, but the chain has its transfer in transaction ${transfer.transaction}.`;
    return [fault('charge_transaction_mismatch', message)];
  });
}

export type ChargedPayment = Extract<Payment, { readonly settled: unknown }>;

/** A charge that no round has confirmed. null: the chain has its transfer, or does not have to have it yet. */
export function chargeFault({ reserved, settled }: ChargedPayment, finding: ChainFinding): Fault | null {
  const { outcome } = finding;
  if (outcome === 'paid' || outcome === 'unavailable') return null;
  const settledAt = Date.parse(settled.settledAt);
  const { validBefore } = reserved;
  if (outcome === 'unused' && !isDue({ settledAt, validBefore }, { time: finding.chainTimeSeconds }))
    return null;
  const recorded =
    settled.transaction === null ? 'no transaction hash' : `transaction ${settled.transaction}`;
  const message = `The charge of ${reserved.amount} units to ${reserved.payer} is recorded with ${recorded}, but on the chain its authorization is ${ON_CHAIN[outcome]}.`;
  return fault('charge_not_on_chain', message);
}

const ON_CHAIN = {
  unused: 'not used',
  cancelled: 'cancelled',
  spent_elsewhere: 'used for another transfer',
} as const;

/** A transfer that the record states as a refund. Addresses in lower case. `sender` null: of any sender. */
export type StatedRefund = {
  readonly network: string;
  readonly transaction: string;
  readonly asset: string;
  readonly sender: string | null;
  readonly payer: string;
  /** At least, in atomic units. */
  readonly amount: string;
};

/** `transfers`: of the transaction; null: the chain has no such transaction, or it failed. */
export function refundFault(stated: StatedRefund, transfers: readonly Transfer[] | null): Fault | null {
  const { transaction, asset, payer, sender, amount } = stated;
  const moved = (transfers ?? [])
    .filter((one) => one.asset === asset && one.recipient === payer && one.sender !== one.recipient)
    .filter((one) => sender === null || one.sender === sender)
    .reduce((sum, one) => sum + one.amount, 0n);
  if (moved >= BigInt(amount)) return null;
  const found = transfers === null ? 'the chain has no such transaction' : `on the chain it moved ${moved}`;
  const message = `Transaction ${transaction} is recorded as a refund of ${amount} units to ${payer}, but ${found}.`;
  return fault('refund_not_on_chain', message);
}
