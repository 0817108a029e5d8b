// Refunds: a charge that is returned in full to its payer, once. It begins, so that the payment buys nothing any more; then
// the transfers of one transaction are claimed for it; then it is recorded.

import type { RefundTransfer } from '../events/refund.ts';
import { type EventOf, type Events, event } from '../events.ts';
import type { Job } from '../job/state.ts';
import { boughtNothing, type LedgerEntry } from './ledger.ts';
import { type ChainFinding, isMissing, isSelfPaid, type Payment } from './state.ts';

// ── begin and cancel ────────────────────────────────────────────────────────────────────────────────────

export type JobProgress = LedgerEntry['job'];

export type RefundingPayment = Extract<Payment, { status: 'refunding' }>;

export function progressOf(job: Job): JobProgress {
  if (job.status !== 'completed') return job.status;
  return boughtNothing(job.completed.errorCategory) ? 'interrupted' : 'executed';
}

/**
 * `unconfirmed`: whether the money moved is unknown. `not_charged`: it did not. `missing`: the comparison with the chain
 * found no transfer of the charge; `not_on_chain`: the look-up at the begin shows none. `not_final`: its block does not count
 * yet, and a reorganisation may remove it. `chain_unavailable`: it shows nothing. `self_paid`: by the payee, so that no money
 * came in. `served`: its call was made.
 */
export type BeginRefusal =
  | 'not_found'
  | 'unconfirmed'
  | 'not_charged'
  | 'missing'
  | 'not_on_chain'
  | 'not_final'
  | 'chain_unavailable'
  | 'self_paid'
  | 'job_running'
  | 'served'
  | 'already_refunded';

/** `includeServed`: also a payment whose call was made. */
export type BeginFacts = { readonly job: JobProgress; readonly includeServed: boolean };

/** Charged, and its refund may begin or has begun, as far as the record shows. */
export type RefundablePayment = Extract<Payment, { status: 'settled' | 'refunding' }>;

/** The payment, or why its refund may not begin, whatever the chain shows. */
export function refundable(
  payment: Payment,
  { job, includeServed }: BeginFacts,
): { readonly kind: 'refundable'; readonly payment: RefundablePayment } | { readonly kind: BeginRefusal } {
  if (payment.status !== 'settled' && payment.status !== 'refunding')
    return { kind: NOT_REFUNDABLE[payment.status] };
  if (isSelfPaid(payment.reserved)) return { kind: 'self_paid' };
  if (isMissing(payment)) return { kind: 'missing' };
  if (payment.status === 'refunding') return { kind: 'refundable', payment };
  if (job === 'running') return { kind: 'job_running' };
  return job === 'executed' && !includeServed ? { kind: 'served' } : { kind: 'refundable', payment };
}

const NOT_REFUNDABLE: Readonly<Record<Exclude<Payment, RefundablePayment>['status'], BeginRefusal>> = {
  absent: 'not_found',
  rejected: 'not_charged',
  released: 'not_charged',
  reserved: 'unconfirmed',
  retried: 'unconfirmed',
  unknown: 'unconfirmed',
  missing: 'missing',
  refunded: 'already_refunded',
};

/** `statement`: why the operator is certain of the charge, for a chain without a usable answer; null: none. `at`: RFC 3339. */
export type BeginRequest = {
  readonly job: JobProgress;
  readonly finding: ChainFinding;
  /** The transaction of the charge; null: none was found, or the refund has begun before. */
  readonly charge: Pick<FoundTransfers, 'outcome'> | null;
  readonly statement: string | null;
  readonly at: string;
};

/**
 * Money goes back only if it came, and stays: a reorganisation could remove the charge whose refund was sent, or put it behind
 * its refund. No events: the refund has begun before.
 */
export function beginRefund(
  payment: RefundablePayment,
  { job, finding, charge, statement, at }: BeginRequest,
): Events<readonly EventOf<'RefundBegun'>[]> | { readonly kind: BeginRefusal } {
  const isSilent = finding.outcome === 'unavailable';
  if (!isSilent && finding.outcome !== 'paid') return { kind: 'not_on_chain' };
  if (payment.status === 'refunding') return { kind: 'events', events: [] };
  if (charge?.outcome === 'unconfirmed') return { kind: 'not_final' };
  if (charge?.outcome === 'missing' || charge?.outcome === 'failed') return { kind: 'not_on_chain' };
  const isUnavailable = isSilent || charge?.outcome !== 'found';
  if (isUnavailable && statement === null) return { kind: 'chain_unavailable' };
  const begun = refundBegun(payment, job === 'executed', isUnavailable ? statement : null, at);
  return { kind: 'events', events: [begun] };
}

function refundBegun(
  { reserved: { jobId } }: Extract<Payment, { status: 'settled' | 'missing' | 'refunding' }>,
  served: boolean,
  statement: string | null,
  at: string,
): EventOf<'RefundBegun'> {
  return event('RefundBegun', { jobId, served, statement, begunAt: at });
}

/** `startedBefore`: the log has JobStarted before RefundBegun; false also if the job does not exist. */
export type ConfirmFacts = { readonly job: JobProgress; readonly startedBefore: boolean };

/**
 * Whether a refund that has begun holds, by the job as read after that: a job that starts later reads the payment and sends
 * nothing. `undecided`: the job is about to send nothing, or it has read the payment before. `lost`: its call was made.
 */
export function confirmRefund(
  { begun }: RefundingPayment,
  { job, startedBefore }: ConfirmFacts,
): 'holds' | 'undecided' | 'lost' {
  if (job === 'running') return startedBefore ? 'undecided' : 'holds';
  return job === 'executed' && !begun.served ? 'lost' : 'holds';
}

export function cancelRefund(
  payment: Payment,
  reason: EventOf<'RefundCancelled'>['data']['reason'],
  at: string,
): Events<[EventOf<'RefundCancelled'>]> | { readonly kind: 'not_begun' | 'already_refunded' } {
  if (payment.status === 'refunded') return { kind: 'already_refunded' };
  if (payment.status !== 'refunding') return { kind: 'not_begun' };
  const cancelled = event('RefundCancelled', { jobId: payment.reserved.jobId, reason, cancelledAt: at });
  return { kind: 'events', events: [cancelled] };
}

// ── the transaction that moves the money back ───────────────────────────────────────────────────────────

/** A refund that the transfers of a transaction are claimed for. */
export type Allocation = Omit<RefundTransfer, 'refunds'> & { readonly payment: string };

/** What a transaction refunds: the stream of its claims. */
export type RefundClaims = { readonly allocations: readonly Allocation[] };

export const NO_CLAIMS: RefundClaims = { allocations: [] };

export function evolveClaims(
  { allocations }: RefundClaims,
  { data }: EventOf<'RefundClaimed'>,
): RefundClaims {
  const kept = allocations.filter(({ payment }) => !data.released.includes(payment));
  return { allocations: [...kept, ...data.transfers.flatMap(allocationsOf)] };
}

const allocationsOf = ({ refunds, asset, sender, payer }: RefundTransfer): Allocation[] =>
  refunds.map(({ payment, amount }) => ({ payment, asset, sender, payer, amount }));

/** One transfer of any token; addresses in lower case, amount in atomic units. */
export type Transfer = {
  readonly asset: string;
  readonly sender: string;
  readonly recipient: string;
  readonly amount: bigint;
};

/** A transaction as the chain shows it. */
export type FoundTransfers =
  | {
      readonly outcome: 'found';
      /** CAIP-2. */
      readonly network: string;
      /** Time of its block (Unix). */
      readonly atSeconds: number;
      readonly transfers: readonly Transfer[];
    }
  /** `missing`: no block contains the transaction. */
  | { readonly outcome: 'missing'; readonly network: string }
  /** Its block does not count before so many more blocks do. */
  | { readonly outcome: 'unconfirmed'; readonly blocks: number }
  /** `no_safe_block`: the node cannot say which blocks count. */
  | { readonly outcome: 'failed' | 'unavailable' | 'no_safe_block' };

/** A payment whose refund has begun, by the name of its stream. */
export type Begun = {
  readonly id: string;
  readonly payment: RefundingPayment;
  /** The other transaction that is claimed for it and not recorded yet; null: none is. */
  readonly claimedBy: string | null;
  /** See `confirmRefund`: nothing is returned for it otherwise. */
  readonly holds: boolean;
  /** Time of the block of its charge (Unix); null: the chain does not show it now. */
  readonly chargedAtSeconds: number | null;
};

/** Why a begun refund is not covered by a transaction that moves something to its payer. */
export type Uncovered =
  | 'claimed_by_other'
  /** Its begin ended before it read that the call was running, or was made. */
  | 'not_confirmed'
  | 'charge_transaction'
  | 'transfer_before_charge'
  | 'wrong_asset'
  | 'wrong_sender'
  /** What is left of its transfers, if anything, is less than the amount. */
  | 'transfer_too_small'
  | 'transfer_used';

export type Claiming = {
  /** null: there is nothing to add to the claims. */
  readonly event: EventOf<'RefundClaimed'> | null;
  readonly uncovered: readonly { readonly begun: Begun; readonly reason: Uncovered }[];
};

export type ClaimRequest = {
  readonly transaction: string;
  readonly found: Extract<FoundTransfers, { outcome: 'found' }>;
  /** On the network of the transaction, the oldest first. */
  readonly begun: readonly Begun[];
  /** Wallet beside the payee that refunds are sent from, lower case; null: none. */
  readonly refundFrom: string | null;
  /** Payments of the claims that another transaction has refunded. */
  readonly released: readonly string[];
  /** The most refunds of one event. */
  readonly max: number;
  readonly at: string;
};

/**
 * Claims the transfers of a transaction for begun refunds of their recipients, each in full, as far as earlier claims have
 * left anything. What one sender moved to one payer in one asset counts as one transfer.
 */
export function claimTransfers(claims: RefundClaims, request: ClaimRequest): Claiming {
  const { transaction, found, refundFrom, released, max, at } = request;
  const held = claims.allocations.filter(({ payment }) => !released.includes(payment));
  const pots = potsOf(found.transfers, held);
  const uncovered: { begun: Begun; reason: Uncovered }[] = [];
  let claimed = 0;
  for (const begun of request.begun) {
    if (held.some(({ payment }) => payment === begun.id)) continue;
    const toPayer = pots.filter(({ payer }) => payer === begun.payment.reserved.payer.toLowerCase());
    if (toPayer.length === 0) continue;
    const pot = claimed < max ? potFor(begun, toPayer, { transaction, found, refundFrom }) : null;
    if (pot === null) continue;
    if (typeof pot === 'string') {
      uncovered.push({ begun, reason: pot });
      continue;
    }
    const { jobId, amount } = begun.payment.reserved;
    pot.left -= BigInt(amount);
    pot.refunds.push({ payment: begun.id, jobId, amount });
    claimed++;
  }
  if (claimed === 0 && released.length === 0) return { event: null, uncovered };
  const transfers = pots
    .filter(({ refunds }) => refunds.length > 0)
    .map(({ left: _, ...pot }) => ({ ...pot, amount: String(pot.amount) }));
  const { network } = found;
  const facts = { network, transaction, transfers, released: [...released], claimedAt: at };
  return { event: event('RefundClaimed', facts), uncovered };
}

/** What one sender moved to one payer in one asset, and what is left of it. */
type Pot = Omit<RefundTransfer, 'amount'> & { readonly amount: bigint; left: bigint };

function potsOf(transfers: readonly Transfer[], held: readonly Allocation[]): readonly Pot[] {
  const sums = new Map<string, Pot>();
  for (const { asset, sender, recipient: payer, amount } of transfers) {
    if (sender === payer) continue;
    const pot = potKey({ asset, sender, payer });
    const sum = (sums.get(pot)?.amount ?? 0n) + amount;
    sums.set(pot, { asset, sender, payer, amount: sum, left: sum, refunds: [] });
  }
  for (const allocation of held) {
    const pot = sums.get(potKey(allocation));
    if (pot !== undefined) pot.left -= BigInt(allocation.amount);
  }
  return [...sums.values()];
}

/** Names what counts as one transfer of a transaction. */
export const potKey = ({
  asset,
  sender,
  payer,
}: Pick<RefundTransfer, 'asset' | 'sender' | 'payer'>): string => `${asset} ${sender} ${payer}`.toLowerCase();

function potFor(
  { payment, claimedBy, holds, chargedAtSeconds }: Begun,
  toPayer: readonly Pot[],
  { transaction, found, refundFrom }: Pick<ClaimRequest, 'transaction' | 'found' | 'refundFrom'>,
): Pot | Uncovered {
  const { asset, amount, payTo, reservedAt } = payment.reserved;
  if (claimedBy !== null) return 'claimed_by_other';
  if (!holds) return 'not_confirmed';
  if (payment.settled.transaction === transaction) return 'charge_transaction';
  // A block's time is compared with a block's time: the clock of the process that reserved may have been wrong.
  const notBefore = chargedAtSeconds ?? Math.floor(Date.parse(reservedAt) / 1000);
  if (found.atSeconds < notBefore) return 'transfer_before_charge';
  const ofAsset = toPayer.filter((pot) => pot.asset === asset.toLowerCase());
  if (ofAsset.length === 0) return 'wrong_asset';
  const sent = ofAsset.filter(({ sender }) => sender === payTo.toLowerCase() || sender === refundFrom);
  if (sent.length === 0) return 'wrong_sender';
  const enough = sent.find(({ left }) => left >= BigInt(amount));
  if (enough !== undefined) return enough;
  return sent.some((pot) => pot.amount >= BigInt(amount)) ? 'transfer_used' : 'transfer_too_small';
}

/** `served`: the call of the payment was made. */
export type RefundFacts = { readonly transaction: string; readonly served: boolean; readonly at: string };

/**
 * Records that a claimed transfer refunded the payment. Its money has moved, so a refund that was cancelled meanwhile begins
 * again. No events: this transaction is recorded as its refund. `elsewhere`: another one is, or it was not charged.
 */
export function recordRefund(
  payment: Payment,
  { sender }: Pick<Allocation, 'sender'>,
  { transaction, served, at }: RefundFacts,
): Events<readonly EventOf<'RefundBegun' | 'PaymentRefunded'>[]> | { readonly kind: 'elsewhere' } {
  if (payment.status === 'refunded' && payment.refunded.transaction === transaction)
    return { kind: 'events', events: [] };
  if (payment.status !== 'refunding' && payment.status !== 'settled' && payment.status !== 'missing')
    return { kind: 'elsewhere' };
  const { jobId, network, asset, amount, payer } = payment.reserved;
  const facts = { jobId, network, asset, amount, payer, transaction, sender };
  const refunded = event('PaymentRefunded', { ...facts, evidence: 'chain', refundedAt: at });
  const again = payment.status === 'refunding' ? [] : [refundBegun(payment, served, null, at)];
  return { kind: 'events', events: [...again, refunded] };
}
