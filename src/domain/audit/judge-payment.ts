// Whether a payment bought one job, the one that names it; whether an idempotency key was held by one job at a time; and
// whether a job's decision approved it.
import type { DecisionRecorded } from '../decision/events.ts';
import type { ClaimEvent, EventOf, PaymentEvent } from '../events.ts';
import type { JobCompleted, JobStarted } from '../job/events.ts';
import { type Claim, evolveClaim } from '../payment/claim.ts';
import type { IdempotencyKeyClaimed } from '../payment/events.ts';
import { boughtNothing } from '../payment/ledger.ts';
import { absentPayment, evolvePayment, type Payment } from '../payment/state.ts';
import type { Fault } from './finding.ts';

/** One payment's stream, as far as it has been read. */
export type PaymentStory = {
  readonly payment: Payment;
  /** Jobs that it was ever reserved for. */
  readonly reservedFor: readonly string[];
  /** Those of them whose reservation ended without the money, or with its refund. */
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

const isEnd = ({ type }: PaymentEvent) =>
  type === 'PaymentRejected' || type === 'PaymentReleased' || type === 'PaymentRefunded';

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
  // A refund can be recorded while the job is being started; `refundedFault` requires that it is never sent.
  if (story.payment.status !== 'settled' && story.payment.status !== 'refunded') {
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

/** Of a job that started with a payment that was refunded before. */
export const refundedFault = ({ errorCategory }: JobCompleted): Fault | null =>
  boughtNothing(errorCategory)
    ? null
    : { kind: 'payment_mismatch', message: 'the job was executed, and its payment was refunded before it' };

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

/** Names of the members that differ, of those that the first has. */
function differing<T extends { readonly [name: string]: string | number | boolean | null }>(
  expected: T,
  found: { readonly [K in keyof T]: unknown },
): readonly string[] {
  return Object.keys(expected).filter((name) => expected[name] !== found[name]);
}

/** What the record says elsewhere, up to the event. */
export type ClaimFacts = {
  /** The payment that the claim names; null where it names none, or the log has no such stream. */
  readonly payment: PaymentStory | null;
  /** Of the job that the event names. */
  readonly job: 'absent' | 'running' | 'completed';
};

export function judgeClaim(
  claim: Claim,
  event: ClaimEvent,
  facts: ClaimFacts,
): { readonly claim: Claim; readonly faults: readonly Fault[] } {
  const next = evolveClaim(claim, event);
  if (next === claim) {
    const held = claim.status === 'held' ? `${claim.claimed.jobId} holds the key` : 'no job holds the key';
    return { claim, faults: [impossibleClaim(`${held} here`)] };
  }
  if (event.type === 'IdempotencyKeyClaimed') return { claim: next, faults: claimFaults(event.data, facts) };
  const holder = claim.status === 'held' ? claim.claimed : null;
  return { claim: next, faults: holder === null ? [] : releaseFaults(holder, event.data, facts) };
}

const impossibleClaim = (message: string): Fault => ({ kind: 'claim_event_impossible', message });

/** The payment is reserved before its key is claimed. */
function claimFaults(
  { jobId, paymentStream }: IdempotencyKeyClaimed,
  { payment }: ClaimFacts,
): readonly Fault[] {
  if (paymentStream === null) return [];
  if (payment === null) {
    return [{ kind: 'payment_missing', message: 'the claim names a payment that the log does not have' }];
  }
  if (payment.reservedFor.includes(jobId)) return [];
  return [
    { kind: 'payment_mismatch', message: 'the claim names a payment that was never reserved for its job' },
  ];
}

function releaseFaults(
  holder: IdempotencyKeyClaimed,
  { reason }: EventOf<'IdempotencyKeyReleased'>['data'],
  { payment, job }: ClaimFacts,
): readonly Fault[] {
  if (reason === 'retention_over') {
    if (job === 'completed') return [];
    if (job === 'running') return [impossibleClaim('the key is taken from a job that still runs')];
    const message = `the key was kept for ${holder.jobId} after its end, and the log does not have that job`;
    return [{ kind: 'job_missing', message }];
  }
  if (payment?.endedFor.includes(holder.jobId)) return [];
  return [impossibleClaim('the key is taken because of a payment that has not ended')];
}

/** What the claim says against a job that starts under it. null: no such stream. */
export function claimedFaults(started: JobStarted, claim: Claim | null): readonly Fault[] {
  if (started.claimStream === null) return [];
  if (claim === null) {
    return [{ kind: 'claim_missing', message: 'the job names a claim that the log does not have' }];
  }
  const mismatch = (message: string): Fault[] => [{ kind: 'claim_mismatch', message }];
  if (claim.status === 'free' || claim.claimed.jobId !== started.jobId)
    return mismatch('the job starts and does not hold its key');
  return claim.claimed.fingerprint === started.fingerprint
    ? []
    : mismatch('the key was claimed for another request');
}
