// Checks that a payment bought one job only, the one that names it; that one job at a time held an idempotency key; and
// that a job's decision approved it.
import type { DecisionRecorded } from '../decision/events.ts';
import type { ClaimEvent, EventOf, PaymentEvent } from '../events.ts';
import type { JobCompleted, JobStarted } from '../job/events.ts';
import { type Claim, evolveClaim } from '../payment/claim.ts';
import type { IdempotencyKeyClaimed } from '../payment/events.ts';
import { boughtNothing, evolveEntry, type LedgerEntry, NO_ENTRY } from '../payment/ledger.ts';
import type { Fault } from './finding.ts';

/** A payment's stream, and the job that it paid for, as read so far. */
export type PaymentHistory = LedgerEntry & {
  /** All jobs that it was reserved for. */
  readonly reservedFor: readonly string[];
  /** Those of them whose reservation ended without a settlement, or with its refund. */
  readonly endedFor: readonly string[];
  /** The job that started with it. */
  readonly servedBy: string | null;
  /** Its job started after its refund. */
  readonly startedRefunded: boolean;
};

export const NO_HISTORY: PaymentHistory = {
  ...NO_ENTRY,
  reservedFor: [],
  endedFor: [],
  servedBy: null,
  startedRefunded: false,
};

export function judgePayment(
  history: PaymentHistory,
  event: PaymentEvent,
): { readonly history: PaymentHistory; readonly faults: readonly Fault[] } {
  const entry = evolveEntry(history, event);
  const fault =
    entry === history ? impossible('it cannot follow in the state of the payment') : faultOf(history, event);
  const { jobId } = event.data;
  const next = {
    ...history,
    ...entry,
    reservedFor: event.type === 'PaymentReserved' ? [...history.reservedFor, jobId] : history.reservedFor,
    endedFor: isEnd(event) ? [...history.endedFor, jobId] : history.endedFor,
  };
  return { history: next, faults: fault === null ? [] : [fault] };
}

const isEnd = ({ type }: PaymentEvent) =>
  type === 'PaymentRejected' || type === 'PaymentReleased' || type === 'PaymentRefunded';

const impossible = (message: string): Fault => ({ kind: 'payment_event_impossible', message });

/** The fault of an event that the payment's state allows. */
function faultOf({ payment }: PaymentHistory, event: PaymentEvent): Fault | null {
  if (event.type === 'PaymentReserved' || payment.status === 'absent') return null;
  const { jobId } = event.data;
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
    return impossible('after a lost answer the facilitator alone is no evidence that no money moved');
  return null;
}

/** Contradictions between a job's start and its payment's stream. null: no such stream. */
export function paidFaults(started: JobStarted, history: PaymentHistory | null): readonly Fault[] {
  const { jobId, payment } = started;
  if (payment === null) return [];
  if (history === null || history.payment.status === 'absent') {
    return [{ kind: 'payment_missing', message: 'the job names a payment that the log does not have' }];
  }
  const faults: Fault[] = [];
  const mismatch = (message: string) => faults.push({ kind: 'payment_mismatch', message });
  if (history.servedBy !== null) {
    const message = `the payment has bought ${history.servedBy} already`;
    faults.push({ kind: 'payment_used_twice', message });
  }
  // A refund can be recorded while the job is being started; `refundedFault` requires that it is never sent.
  if (history.payment.status !== 'settled' && history.payment.status !== 'refunded') {
    mismatch('the payment is not settled when the job starts');
    return faults;
  }
  const { reserved, settled } = history.payment;
  if (reserved.jobId !== jobId) mismatch(`the payment is reserved for ${reserved.jobId}`);
  if (reserved.fingerprint !== started.fingerprint) mismatch('the payment was made for another request');
  const fields = differing(payment, { ...reserved, transaction: settled.transaction });
  if (fields.length > 0) mismatch(`job and payment differ in ${fields.join(', ')}`);
  return faults;
}

/** The fault of a job that was executed although its payment was refunded before its start. */
export const refundedFault = (
  { errorCategory }: JobCompleted,
  { startedRefunded }: PaymentHistory,
): Fault | null =>
  boughtNothing(errorCategory) || !startedRefunded
    ? null
    : { kind: 'payment_mismatch', message: 'the job was executed, and its payment was refunded before it' };

/** The parts of a decision that its job must match. `hash`: SHA-256 of JCS of its data, hex. */
export type DecisionFacts = { readonly hash: string } & Pick<DecisionRecorded, 'recommendation'>;

export function decisionFaults(started: JobStarted, history: DecisionFacts | null): readonly Fault[] {
  if (started.decisionId === null) return [];
  if (history === null) {
    return [{ kind: 'decision_missing', message: 'the job names a decision that the log does not have' }];
  }
  const mismatch = (message: string): Fault[] => [{ kind: 'decision_mismatch', message }];
  if (history.hash !== started.decisionHash)
    return mismatch('the decision is not the one whose hash the job has');
  if (history.recommendation !== 'pay_and_execute') return mismatch('the decision does not approve the job');
  return [];
}

/** The names of the members of `expected` that differ in `found`. */
function differing<T extends { readonly [name: string]: string | number | boolean | null }>(
  expected: T,
  found: { readonly [K in keyof T]: unknown },
): readonly string[] {
  return Object.keys(expected).filter((name) => expected[name] !== found[name]);
}

/** Facts of other streams, up to the event. */
export type ClaimFacts = {
  /** The payment that the claim names; null if it names none, or if the log has no such stream. */
  readonly payment: PaymentHistory | null;
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
    return { claim, faults: [impossibleClaim(`${held} at this event`)] };
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
    if (job === 'running') return [impossibleClaim('the key is released from a job that still runs')];
    const message = `the key was held by ${holder.jobId} until after its end, and the log does not have that job`;
    return [{ kind: 'job_missing', message }];
  }
  if (payment?.endedFor.includes(holder.jobId)) return [];
  return [impossibleClaim('the key is released because of a payment that has not ended')];
}

/** Contradictions between a job's start and its claim. null: no such stream. */
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
