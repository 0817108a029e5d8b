// The payments of a log as one fold: which of them an operator has to resolve, and which bought something.
import { claimedTime, type DomainEvent, type EventOf, type PaymentEvent } from '../events.ts';
import type { JobCompleted } from '../job/events.ts';
import { absentPayment, evolvePayment, type Payment } from './state.ts';

/** One payment, and how far its job has come. */
export type LedgerEntry = {
  readonly payment: Payment;
  /** `interrupted`: also closed without being sent. `executed`: the paid call was made (a failed target counts). */
  readonly job: 'absent' | 'running' | 'interrupted' | 'executed';
  /** Time of the event that led to this state. */
  readonly since: string;
};

export type LedgerEvent = PaymentEvent | EventOf<'JobStarted' | 'JobCompleted'>;

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
      return payment === entry.payment ? entry : { ...entry, payment, since: claimedTime(event) };
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
 * job was interrupted or never sent. `unknown`: whether the money moved is unconfirmed.
 */
export type OpenState = 'unserved' | 'refundable' | 'unknown';

/** What is younger than this may still be under way. */
const UNDER_WAY_MS = 45_000;

/** null: over, or under way: nothing for an operator to resolve. `nowMs`: Unix ms. */
export function openState({ payment, job, since }: LedgerEntry, nowMs: number): OpenState | null {
  switch (payment.status) {
    case 'settled':
      return job === 'absent' ? 'unserved' : job === 'interrupted' ? 'refundable' : null;
    case 'unknown':
      return 'unknown';
    case 'reserved':
    case 'retried':
      return nowMs - Date.parse(since) > UNDER_WAY_MS ? 'unknown' : null;
    default:
      return null;
  }
}

/** What the event means for the money; null: nothing. */
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
