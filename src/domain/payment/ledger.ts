// What an operator has to resolve: payments that bought nothing yet, or whose settlement is unconfirmed.
import { claimedTime, type EventOf, type PaymentEvent } from '../events.ts';
import type { JobCompleted } from '../job/events.ts';
import { absentPayment, type BoundPayment, evolvePayment, isBound } from './state.ts';

/** One payment that is not over, and how far its job has come. */
export type LedgerEntry = {
  readonly payment: BoundPayment;
  /** `interrupted`: closed without anyone knowing that the target was called, or knowing that it was not. */
  readonly job: 'absent' | 'running' | 'interrupted';
  /** When it came to this, by the event that says so. */
  readonly since: string;
};

export type LedgerEvent = PaymentEvent | EventOf<'JobStarted' | 'JobCompleted'>;

/**
 * Folds the events of one payment and of its job, in the log's order. null: nothing is open, because no money moved or
 * because it bought what it was paid for (a failed target was tried, and counts).
 */
export function evolveEntry(entry: LedgerEntry | null, event: LedgerEvent): LedgerEntry | null {
  switch (event.type) {
    case 'JobStarted':
      return isJobOf(entry, event) ? { ...entry, job: 'running', since: event.data.startedAt } : entry;
    case 'JobCompleted': {
      if (!isJobOf(entry, event)) return entry;
      const { errorCategory, completedAt } = event.data;
      return boughtNothing(errorCategory) ? { ...entry, job: 'interrupted', since: completedAt } : null;
    }
    default: {
      const payment = evolvePayment(entry?.payment ?? absentPayment, event);
      if (entry !== null && payment === entry.payment) return entry;
      return isBound(payment) ? { payment, job: 'absent', since: claimedTime(event) } : null;
    }
  }
}

/** The job was interrupted, or closed without sending its request: its payment is refundable. */
export const boughtNothing = (errorCategory: JobCompleted['errorCategory']): boolean =>
  errorCategory === 'interrupted_unknown' || errorCategory === 'not_executed';

/**
 * A settlement that came to light after its payment had ended: `history` is the payment's stream up to it. null: it
 * says nothing new.
 */
export function reopenedEntry(history: readonly PaymentEvent[]): LedgerEntry | null {
  const settlement = history.at(-1);
  if (settlement === undefined) return null;
  const before = history.slice(0, -1).reduce(evolvePayment, absentPayment);
  const payment = evolvePayment(before, settlement);
  if (payment === before || !isBound(payment)) return null;
  return { payment, job: 'absent', since: claimedTime(settlement) };
}

const isJobOf = (
  entry: LedgerEntry | null,
  { data }: EventOf<'JobStarted' | 'JobCompleted'>,
): entry is LedgerEntry => entry !== null && entry.payment.reserved.jobId === data.jobId;

/**
 * `unserved`: settled, its job never started; the same payment header still executes it. `refundable`: settled, and its
 * job was interrupted or never sent. `unknown`: whether the money moved is unconfirmed.
 */
export type OpenState = 'unserved' | 'refundable' | 'unknown';

/** What is younger than this may still be under way. */
const UNDER_WAY_MS = 45_000;

/** null: under way, nothing to look after. `nowMs`: Unix ms. */
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
      return payment satisfies never;
  }
}
