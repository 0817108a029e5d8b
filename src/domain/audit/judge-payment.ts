// Checks that a payment bought one job only, the one that names it; that the job held its idempotency key, which
// its payment or its end frees; and that a job's decision approved it.
import type { DecisionRecorded } from '../events/decision.ts';
import type { JobCompleted, JobStarted } from '../events/job.ts';
import type { IdempotencyKeyClaimed } from '../events/payment.ts';
import type { ClaimEvent, PaymentEvent } from '../events.ts';
import type { Claim } from '../payment/claim.ts';
import {
  boughtNothing,
  evolveEntry,
  isBalanced,
  type LedgerEntry,
  NO_ENTRY,
  type Sums,
} from '../payment/ledger.ts';
import { type Charge, isReturned, type Payment, reservationIn } from '../payment/state.ts';
import { type Fault, fault } from './finding.ts';

/**
 * A payment's stream as read so far. `servedBy`: the job that started with it. `startedUnpaid`: after its refund had begun or
 * it was found missing, and it was not found in order since.
 */
export type PaymentHistory = LedgerEntry & {
  readonly servedBy: string | null;
  readonly startedUnpaid: boolean;
  /** Its charge was found missing and taken back. */
  readonly takenBack: boolean;
};

export const NO_HISTORY: PaymentHistory = {
  ...NO_ENTRY,
  servedBy: null,
  startedUnpaid: false,
  takenBack: false,
};

export function judgePayment(
  history: PaymentHistory,
  event: PaymentEvent,
): { readonly history: PaymentHistory; readonly fault: Fault | null } {
  const entry = evolveEntry(history, event);
  const fault =
    entry.payment === history.payment
      ? impossible(
          `The event ${event.type} cannot follow: the state of the payment is "${history.payment.status}".`,
        )
      : faultOf(history, event);
  const isTakenBack = event.type === 'PaymentRejected' && history.payment.status === 'missing';
  const takenBack = entry.payment.status === 'rejected' && (isTakenBack || history.takenBack);
  return { history: { ...history, ...entry, takenBack }, fault };
}

/** Whether the event ends a reservation: without a settlement, or with its refund. */
export const isEnd = ({ type }: PaymentEvent): boolean =>
  ['PaymentRejected', 'PaymentReleased', 'PaymentRefunded'].includes(type);

const impossible = (message: string): Fault => fault('payment_event_impossible', message);

/** The fault of an event that the payment's state allows. */
function faultOf({ payment, job, servedBy }: PaymentHistory, event: PaymentEvent): Fault | null {
  const reserved = reservationIn(payment);
  if (event.type === 'PaymentReserved' || event.type === 'PaymentDeferred' || reserved === null) return null;
  if (event.data.jobId !== reserved.jobId)
    return impossible(
      `The event ${event.type} names job ${event.data.jobId}, but the payment is reserved for job ${reserved.jobId}.`,
    );
  if (event.type === 'PaymentRejected' && payment.status === 'missing' && servedBy !== null)
    return impossible(`The event PaymentRejected takes back a charge that bought job ${servedBy}.`);
  if (event.type === 'SettlementCorrected' && event.data.recorded !== transactionOf(payment))
    return impossible(
      `The event SettlementCorrected corrects ${event.data.recorded === null ? 'a charge without a transaction' : `transaction ${event.data.recorded}`}, and another is recorded.`,
    );
  if (event.type === 'RefundBegun' && event.data.served && job !== 'executed')
    return impossible(
      `The event RefundBegun states that job ${event.data.jobId} was executed, but the log has no such execution.`,
    );
  if (event.type !== 'PaymentRefunded') return null;
  const { network, asset, amount, payer, transaction } = event.data;
  const fields = differing({ network, asset, amount, payer }, reserved);
  if (fields.length > 0)
    return fault('payment_mismatch', `The refund and the charge differ in ${fields.join(', ')}.`);
  return transactionOf(payment) === transaction
    ? fault('payment_mismatch', 'The refund names the transaction of the charge.')
    : null;
}

const transactionOf = (payment: Payment): string | null =>
  'settled' in payment ? payment.settled.transaction : null;

/** null: charged = served + refunded + open. */
export function booksFault(sums: Sums): Fault | null {
  if (isBalanced(sums)) return null;
  const { network, asset, charged, served, refunded, open } = sums;
  const message = `The payments in ${asset} on ${network} do not balance: charged ${charged} is not served ${served} + refunded ${refunded} + open ${open}.`;
  return fault('books_unbalanced', message);
}

/** Contradictions between a job's start and its payment's stream. null: no such stream. */
export function paidFaults(started: JobStarted, history: PaymentHistory | null): readonly Fault[] {
  const { jobId, payment } = started;
  if (payment === null) return [];
  if (history === null || history.payment.status === 'absent') {
    return [fault('payment_missing', `Job ${jobId} names a payment that is not in the log.`)];
  }
  const faults: Fault[] = [];
  const mismatch = (message: string) => faults.push(fault('payment_mismatch', message));
  if (history.servedBy !== null)
    faults.push(
      fault('payment_used_twice', `The payment of job ${jobId} has already bought job ${history.servedBy}.`),
    );
  // It can be refunded or found missing while the job is being started; `unpaidFault` requires that its request is not sent.
  if (history.takenBack) return faults;
  if (!isCharged(history.payment)) {
    mismatch(`The payment of job ${jobId} is not settled when the job starts.`);
    return faults;
  }
  const { reserved, settled } = history.payment;
  if (reserved.jobId !== jobId)
    mismatch(`The payment of job ${jobId} is reserved for job ${reserved.jobId}.`);
  if (reserved.fingerprint !== started.fingerprint)
    mismatch(`The payment of job ${jobId} was made for another request.`);
  // The transaction can be corrected while the job is being started, which then states the earlier one.
  const { stated } = settled;
  const { transaction } = payment.transaction === stated?.transaction ? stated : settled;
  const fields = differing(payment, { ...reserved, transaction });
  if (fields.length > 0) mismatch(`Job ${jobId} and its payment differ in ${fields.join(', ')}.`);
  return faults;
}

type Charged = Extract<Payment, { readonly settled: Charge }>;
const isCharged = (payment: Payment): payment is Charged => 'settled' in payment;

/** Its refund has begun, or the chain has no transfer of its charge: a job that starts then sends nothing. */
export const buysNothing = ({ payment, takenBack }: PaymentHistory): boolean =>
  payment.status === 'missing' || isReturned(payment) || takenBack;

/** The fault of a job that was executed although its payment bought nothing any more at its start. */
export const unpaidFault = (
  { jobId, errorCategory }: JobCompleted,
  { startedUnpaid }: PaymentHistory,
): Fault | null =>
  boughtNothing(errorCategory) || !startedUnpaid
    ? null
    : fault(
        'payment_mismatch',
        `Job ${jobId} was executed, although the refund of its payment had begun or its charge was found missing before.`,
      );

/** The parts of a decision that its job must match. `hash`: SHA-256 of JCS of its data, hex. */
export type DecisionOfJob = { readonly hash: string } & Pick<DecisionRecorded, 'recommendation'>;

export function decisionFaults(started: JobStarted, history: DecisionOfJob | null): readonly Fault[] {
  const { jobId, decisionId } = started;
  if (decisionId === null) return [];
  if (history === null)
    return [fault('decision_missing', `Job ${jobId} names decision ${decisionId}, which is not in the log.`)];
  const mismatch = (message: string): Fault[] => [fault('decision_mismatch', message)];
  if (history.hash !== started.decisionHash)
    return mismatch(`Job ${jobId} states another hash than that of decision ${decisionId}.`);
  if (history.recommendation !== 'pay_and_execute')
    return mismatch(`Decision ${decisionId} does not approve job ${jobId}.`);
  return [];
}

/** The names of the members of `expected` that differ in `found`. */
function differing<T extends { readonly [name: string]: string | number | boolean | null }>(
  expected: T,
  found: { readonly [K in keyof T]: unknown },
): readonly string[] {
  return Object.keys(expected).filter((name) => expected[name] !== found[name]);
}

/**
 * `history`: of the payment that the claim names; null: no such stream. `hasEnded`: whether a reservation of it for the
 * claim's job has ended, as each one but the last has. `isOver`: whether the job has ended.
 */
export type ClaimFacts = {
  readonly history: PaymentHistory | null;
  readonly hasEnded: boolean;
  readonly isOver: boolean;
};

/** The fault of an event that makes or releases the claim, as the claim's state allows. */
export function claimFault(
  { jobId, paymentStream }: IdempotencyKeyClaimed,
  event: ClaimEvent,
  { history, hasEnded, isOver }: ClaimFacts,
): Fault | null {
  if (event.type === 'IdempotencyKeyClaimed') {
    // The payment is reserved before its key is claimed.
    if (paymentStream === null || hasEnded) return null;
    if (history?.payment.status !== 'absent' && history?.payment.reserved.jobId === jobId) return null;
    return history === null || history.payment.status === 'absent'
      ? fault('payment_missing', `The claim of job ${jobId} names a payment that is not in the log.`)
      : fault('payment_mismatch', `The claim of job ${jobId} names a payment that is not reserved for it.`);
  }
  const isRetention = event.data.reason === 'retention_over';
  if (isRetention ? isOver : hasEnded) return null;
  // Earlier releases of the service freed the key when the refund began.
  if (!isRetention && history?.payment.status === 'refunding' && history.payment.reserved.jobId === jobId)
    return null;
  const lacking = isRetention ? 'the log has no end of the job' : 'the payment of the job has not ended';
  const message = `The idempotency key of job ${jobId} is released, but ${lacking}.`;
  return fault('claim_event_impossible', message);
}

/**
 * Contradictions between a job's start and its claim. null: no such stream. `payment`: of the job; once it is refunded,
 * another job may hold the key, and `unpaidFault` requires that this one's request is not sent.
 */
export function claimedFaults(
  started: JobStarted,
  claim: Claim | null,
  payment: PaymentHistory | null,
): readonly Fault[] {
  if (started.claimStream === null || payment?.payment.status === 'refunded') return [];
  if (claim === null) {
    return [fault('claim_missing', `Job ${started.jobId} names a claim that is not in the log.`)];
  }
  const mismatch = (message: string): Fault[] => [fault('claim_mismatch', message)];
  if (claim.status === 'free' || claim.claimed.jobId !== started.jobId)
    return mismatch(`Job ${started.jobId} starts and does not hold its idempotency key.`);
  if (claim.claimed.paymentStream !== started.paymentStream)
    return mismatch(`The idempotency key of job ${started.jobId} is held for another payment.`);
  return claim.claimed.fingerprint === started.fingerprint
    ? []
    : mismatch(`The idempotency key of job ${started.jobId} was claimed for another request.`);
}
