// Whether a payment's stream and the job that it bought tell the same, and whether it bought only one.
import type { DecisionRecorded } from '../decision/events.ts';
import type { PaymentEvent } from '../events.ts';
import type { JobStarted } from '../job/events.ts';
import { absentPayment, evolvePayment, isBound, type Payment } from '../payment/state.ts';
import type { Fault } from './event-location.ts';
import { differing } from './same.ts';

/** One payment's stream, as far as it has been read. */
export type PaymentStory = {
  readonly payment: Payment;
  /** Jobs that it was ever reserved for. */
  readonly reservedFor: readonly string[];
  /** Those of them whose reservation ended without the money. */
  readonly endedFor: readonly string[];
  /** The job that started with it. */
  readonly servedBy: string | null;
};

export const NO_STORY: PaymentStory = {
  payment: absentPayment,
  reservedFor: [],
  endedFor: [],
  servedBy: null,
};

export function judgePayment(
  story: PaymentStory,
  event: PaymentEvent,
): { readonly story: PaymentStory; readonly faults: readonly Fault[] } {
  const payment = evolvePayment(story.payment, event);
  const fault =
    payment === story.payment ? impossible('it cannot follow what the payment is') : faultOf(story, event);
  const { jobId } = event.data;
  const next = {
    ...story,
    payment,
    reservedFor: event.type === 'PaymentReserved' ? [...story.reservedFor, jobId] : story.reservedFor,
    endedFor: isEnd(event) ? [...story.endedFor, jobId] : story.endedFor,
  };
  return { story: next, faults: fault === null ? [] : [fault] };
}

const isEnd = ({ type }: PaymentEvent) => type === 'PaymentRejected' || type === 'PaymentReleased';

const impossible = (message: string): Fault => ({ kind: 'payment_event_impossible', message });

/** Of an event that its state lets follow. */
function faultOf({ payment, reservedFor }: PaymentStory, event: PaymentEvent): Fault | null {
  if (event.type === 'PaymentReserved' || payment.status === 'absent') return null;
  const { jobId } = event.data;
  // Whichever job's call moved the money, it was one that the payment was reserved for.
  if (event.type === 'PaymentSettled')
    return reservedFor.includes(jobId) ? null : impossible(`settled for ${jobId}, which never reserved it`);
  if (jobId !== payment.reserved.jobId)
    return impossible(`it is of ${jobId}, and the payment is reserved for another job`);
  if (event.type === 'PaymentRefunded') {
    const { network, asset, amount, payer, jobId, transaction } = event.data;
    const fields = differing({ network, asset, amount, payer, jobId }, payment.reserved);
    if (fields.length > 0)
      return { kind: 'payment_mismatch', message: `refund and charge differ in ${fields.join(', ')}` };
    return payment.status === 'settled' && payment.settled.transaction === transaction
      ? { kind: 'payment_mismatch', message: 'the refund names the transaction of the charge' }
      : null;
  }
  const echo = event.type === 'PaymentRejected' && event.data.evidence === 'facilitator';
  if (echo && payment.status !== 'reserved')
    return impossible('after a lost answer the facilitator alone cannot say that no money moved');
  return null;
}

/** What the payment's stream says against a job that starts with it. null: no such stream. */
export function paidFaults(started: JobStarted, story: PaymentStory | null): readonly Fault[] {
  const { jobId, payment } = started;
  if (payment === null) return [];
  if (story === null || story.payment.status === 'absent') {
    return [{ kind: 'payment_missing', message: 'the job names a payment that the log does not have' }];
  }
  const faults: Fault[] = [];
  const mismatch = (message: string) => faults.push({ kind: 'payment_mismatch', message });
  if (story.servedBy !== null) {
    const message = `the payment has bought ${story.servedBy} already`;
    faults.push({ kind: 'payment_used_twice', message });
  }
  if (!isBound(story.payment) || story.payment.status !== 'settled') {
    mismatch('the payment is not settled when the job starts');
    return faults;
  }
  const { reserved, settled } = story.payment;
  if (reserved.jobId !== jobId) mismatch(`the payment is reserved for ${reserved.jobId}`);
  if (reserved.fingerprint !== started.fingerprint) mismatch('the payment was made for another request');
  const fields = differing(payment, { ...reserved, transaction: settled.transaction });
  if (fields.length > 0) mismatch(`job and payment differ in ${fields.join(', ')}`);
  return faults;
}

/** What is kept of a decision. `hash`: SHA-256 of JCS of its data, hex. */
export type DecisionStory = { readonly hash: string } & Pick<DecisionRecorded, 'recommendation'>;

export function decidedFaults(started: JobStarted, story: DecisionStory | null): readonly Fault[] {
  if (started.decisionId === null) return [];
  if (story === null) {
    return [{ kind: 'decision_missing', message: 'the job names a decision that the log does not have' }];
  }
  const mismatch = (message: string): Fault[] => [{ kind: 'decision_mismatch', message }];
  if (story.hash !== started.decisionHash)
    return mismatch('the decision is not the one whose hash the job has');
  if (story.recommendation !== 'pay_and_execute') return mismatch('the decision does not approve the job');
  return [];
}
