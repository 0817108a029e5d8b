// The payments of a log as one fold: which of them an operator has to resolve, and the sums of the money, for which
// charged = served + refunded + open always holds.

import type { JobCompleted } from '../events/job.ts';
import type { PaymentReserved } from '../events/payment.ts';
import {
  claimedTime,
  type DomainEvent,
  type EventOf,
  isPaymentEvent,
  type PaymentEvent,
  typesIn,
} from '../events.ts';
import type { ChainAccount, ChainBooks, ChargeTimes } from './reconciliation.ts';
import {
  absentPayment,
  evolvePayment,
  isBound,
  isCorrected,
  isMissing,
  isSelfPaid,
  type Payment,
} from './state.ts';

/** One payment, and how far its job has come. */
export type LedgerEntry = {
  readonly payment: Payment;
  /** `interrupted`: also closed without being sent. `executed`: the paid call was made (a failed target counts). */
  readonly job: 'absent' | 'running' | 'interrupted' | 'executed';
  /** Time of the event that led to this state. */
  readonly since: string;
};

export type LedgerEvent = PaymentEvent | EventOf<'JobStarted' | 'JobCompleted'>;

export const LEDGER_TYPES = [
  ...(typesIn('payment') as PaymentEvent['type'][]),
  'JobStarted',
  'JobCompleted',
] as const;

export const isLedgerEvent = (event: DomainEvent): event is LedgerEvent =>
  isPaymentEvent(event) || event.type === 'JobStarted' || event.type === 'JobCompleted';

export const NO_ENTRY: LedgerEntry = { payment: absentPayment, job: 'absent', since: '' };

/** Folds the events of one payment and of its job, in the log's order. */
export function evolveEntry(entry: LedgerEntry, event: LedgerEvent): LedgerEntry {
  switch (event.type) {
    case 'JobStarted':
      return isJobOf(entry, event) ? { ...entry, job: 'running', since: event.data.startedAt } : entry;
    case 'JobCompleted': {
      if (!isJobOf(entry, event)) return entry;
      const job = entryOf(event) === 'served' ? 'executed' : 'interrupted';
      return { ...entry, job, since: event.data.completedAt };
    }
    default: {
      const payment = evolvePayment(entry.payment, event);
      if (payment === entry.payment) return entry;
      // A corrected transaction does not change the state.
      const since = event.type === 'SettlementCorrected' ? entry.since : claimedTime(event);
      return { ...entry, payment, since };
    }
  }
}

const isJobOf = ({ payment }: LedgerEntry, { data }: EventOf<'JobStarted' | 'JobCompleted'>): boolean =>
  payment.status !== 'absent' && payment.reserved.jobId === data.jobId;

/** The job was interrupted, or closed without sending its request: its payment is refundable. */
export const boughtNothing = (errorCategory: JobCompleted['errorCategory']): boolean =>
  errorCategory === 'interrupted_unknown' || errorCategory === 'not_executed';

/**
 * `unserved`: settled, its job never started; the same payment header still executes it. `refundable`: settled, and its
 * job was interrupted or never sent. `refunding`: its refund has begun. `unknown`: whether the money moved is unconfirmed.
 * `missing`: charged in the books, served or refunded or not, and the chain has no transfer of it.
 */
export type OpenState = 'unserved' | 'refundable' | 'refunding' | 'unknown' | 'missing';

/** What is younger than this may still be under way. */
const UNDER_WAY_MS = 45_000;

/** Only a late settlement, or the refund of a served call, changes an entry that is not open. */
export const isOpen = ({ payment, job }: LedgerEntry): boolean =>
  job === 'running' ||
  payment.status === 'refunding' ||
  isMissing(payment) ||
  (isBound(payment) && job !== 'executed');

/** null: over, or under way: nothing for an operator to resolve. `nowMs`: Unix ms. */
export function openState({ payment, job, since }: LedgerEntry, nowMs: number): OpenState | null {
  switch (payment.status) {
    case 'settled':
      if (isSelfPaid(payment.reserved)) return null;
      return job === 'absent' ? 'unserved' : job === 'interrupted' ? 'refundable' : null;
    case 'unknown':
    case 'missing':
      return payment.status;
    case 'refunding':
    case 'refunded':
      return isMissing(payment) ? 'missing' : payment.status === 'refunding' ? 'refunding' : null;
    case 'reserved':
    case 'retried':
      return nowMs - Date.parse(since) > UNDER_WAY_MS ? 'unknown' : null;
    default:
      return null;
  }
}

/**
 * `settling`: its settlement is under way. `running`: its call is. `served`: its call was made. `self_paid`: by the wallet
 * that was paid, so that no money came in. `rejected`, `released`: it ended without money moving.
 */
export type PaymentState =
  | OpenState
  | 'settling'
  | 'running'
  | 'served'
  | 'self_paid'
  | 'refunded'
  | 'rejected'
  | 'released';

/** Of any payment that was reserved. `nowMs`: Unix ms. */
export function paymentState(entry: LedgerEntry, nowMs: number): PaymentState {
  const { payment, job } = entry;
  const open = openState(entry, nowMs);
  if (open !== null) return open;
  if (payment.status === 'settled' && isSelfPaid(payment.reserved)) return 'self_paid';
  if (payment.status === 'settled') return job === 'running' ? 'running' : 'served';
  switch (payment.status) {
    case 'refunded':
    case 'rejected':
    case 'released':
      return payment.status;
    default:
      return 'settling';
  }
}

/** A call whose payment is settled starts within this, or has ended. */
const STARTING_MS = 10_000;

/** Whether money has to go back to its payer, unless a repeat of the call comes first. `since`: RFC 3339. */
export const isRefundDue = (state: PaymentState, since: string, nowMs: number): boolean =>
  state === 'refundable' ||
  state === 'refunding' ||
  (state === 'unserved' && nowMs - Date.parse(since) > STARTING_MS);

/** Whether an operator has to act: a refund is due, or what became of the money is unknown, or it is missing. */
export const needsAction = (state: PaymentState, since: string, nowMs: number): boolean =>
  state === 'unknown' || state === 'missing' || isRefundDue(state, since, nowMs);

/** `amount`: atomic units. */
export type Money = Pick<PaymentReserved, 'network' | 'asset' | 'amount'>;
export type MoneyPaid = Money & Pick<PaymentReserved, 'payer' | 'payTo'>;

/** What the event enters in the books, whatever was before; null: nothing. */
export function entryOf(event: DomainEvent): 'charged' | 'served' | 'refunded' | null {
  switch (event.type) {
    case 'PaymentSettled':
      return 'charged';
    case 'PaymentRefunded':
      return 'refunded';
    case 'JobCompleted':
      return boughtNothing(event.data.errorCategory) ? null : 'served';
    default:
      return null;
  }
}

/** Of one asset on one network, in atomic units. `open`: charged, and neither served nor refunded. */
export type Sums = Omit<Money, 'amount'> & {
  readonly charged: bigint;
  readonly served: bigint;
  readonly refunded: bigint;
  readonly open: bigint;
  /** Charged, wherever it counts, and not on the chain. */
  readonly missing: bigint;
  /** Charged, wherever it counts, and on the chain in another transaction than was recorded first. */
  readonly corrected: bigint;
  /** Charged, and in no block that was compared so far. */
  readonly unconfirmed: bigint;
};

type Sum = Exclude<keyof Sums, 'network' | 'asset'>;

export const noSums = ({ network, asset }: Omit<Money, 'amount'>): Sums => ({
  network,
  asset,
  charged: 0n,
  served: 0n,
  refunded: 0n,
  open: 0n,
  missing: 0n,
  corrected: 0n,
  unconfirmed: 0n,
});

/** One for each asset that was charged, served or refunded. */
export type Books = readonly Sums[];

/**
 * Enters one event. Each sum grows by what the event's own stream says, and a charge leaves its sum by the amount of the
 * charge, so that the books do not balance if the streams contradict each other. `before` and `after`: the payment's
 * entry. `paid`: what the job says that it was paid with, for a JobCompleted; null: nothing. What the payee paid itself is in
 * no sum.
 */
export function enter(
  books: Books,
  event: LedgerEvent,
  before: LedgerEntry,
  after: LedgerEntry,
  paid: MoneyPaid | null,
): Books {
  const payer = after.payment.status === 'absent' ? paid : after.payment.reserved;
  if (payer !== null && isSelfPaid(payer)) return books;
  const flip = (sums: Books, sum: Sum, is: (payment: Payment) => boolean): Books =>
    is(before.payment) === is(after.payment)
      ? sums
      : add(sums, sum, chargeOf(after), is(after.payment) ? 1n : -1n);
  const found = flip(flip(books, 'missing', isMissing), 'corrected', isCorrected);
  return enterMove(found, event, before, after, paid);
}

function enterMove(
  books: Books,
  event: LedgerEvent,
  before: LedgerEntry,
  after: LedgerEntry,
  paid: Money | null,
): Books {
  const [from, to] = [placeOf(before), placeOf(after)];
  const moved = from === null || from === to ? books : add(books, from, chargeOf(before), -1n);
  switch (entryOf(event)) {
    case 'charged':
      return from === null && to !== null
        ? add(add(books, 'charged', chargeOf(after), 1n), 'open', chargeOf(after), 1n)
        : books;
    case 'refunded':
      return event.type === 'PaymentRefunded' ? add(moved, 'refunded', event.data, 1n) : books;
    case 'served':
      // What was refunded before its job ended counts as refunded.
      return from === 'refunded' ? books : add(moved, 'served', paid, 1n);
    default:
      // A missing charge that can never be paid, and for which nothing was sent, is taken back.
      return from !== null && to === null ? add(moved, 'charged', chargeOf(before), -1n) : books;
  }
}

/** In which sum a payment is; null: it was not charged. */
function placeOf({ payment, job }: LedgerEntry): 'open' | 'served' | 'refunded' | null {
  if (payment.status === 'refunded') return 'refunded';
  if (!CHARGED.has(payment.status)) return null;
  return job === 'executed' ? 'served' : 'open';
}

const CHARGED: ReadonlySet<Payment['status']> = new Set(['settled', 'missing', 'refunding']);

const chargeOf = ({ payment }: LedgerEntry): Money | null =>
  payment.status === 'absent' ? null : payment.reserved;

/** `sign`: whether it is added or taken off. */
export function add(books: Books, sum: Sum, money: Money | null, sign: 1n | -1n): Books {
  if (money === null) return books;
  const isIts = (sums: Sums) => sums.network === money.network && sums.asset === money.asset;
  const known = books.some(isIts) ? books : [...books, noSums(money)];
  const change = sign * BigInt(money.amount);
  return known.map((sums) => (isIts(sums) ? { ...sums, [sum]: sums[sum] + change } : sums));
}

/** charged = served + refunded + open, and nothing is owed by anyone. */
export const isBalanced = ({ charged, served, refunded, open, missing, corrected }: Sums): boolean =>
  charged === served + refunded + open &&
  [served, refunded, open, missing, corrected].every((sum) => sum >= 0n) &&
  missing <= charged &&
  corrected <= charged;

// ── what is kept of a log's payments ────────────────────────────────────────────────────────────────

/** A charge whose transfer is in no block that was compared so far. */
export type UnconfirmedCharge = ChargeTimes & {
  readonly account: ChainAccount;
  readonly amount: bigint;
};

/** A payment that ended by the facilitator's refusal: the chain is asked once more. */
export type RefusedPayment = Pick<PaymentReserved, 'validBefore'> & { readonly account: ChainAccount };

/** A job's later events name the job alone. `stream`: its open payment. `paid`: what it runs for. */
export type PaidJob = { readonly stream: string | null; readonly paid: MoneyPaid | null };

/** Payments by their streams, which decide: what is here names candidates, and sums. */
export type Ledger = {
  /** Open payments; the newest are left out where there are too many. */
  readonly entries: ReadonlyMap<string, LedgerEntry>;
  /** The newest are left out where there are too many. */
  readonly unconfirmed: ReadonlyMap<string, UnconfirmedCharge>;
  readonly refused: ReadonlyMap<string, RefusedPayment>;
  readonly books: Books;
  /** The comparisons with the chain, by the key of the account. */
  readonly comparisons: ReadonlyMap<string, ChainBooks>;
};

export const NO_LEDGER: Ledger = {
  entries: new Map(),
  unconfirmed: new Map(),
  refused: new Map(),
  books: [],
  comparisons: new Map(),
};
