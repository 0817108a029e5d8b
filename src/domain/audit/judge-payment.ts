// Checks that a payment bought one job only, the one that names it; that the job held its idempotency key; and that a
// job's decision approved it.
import type { DecisionRecorded } from '../decision/events.ts';
import type { PaymentEvent } from '../events.ts';
import type { JobStarted } from '../job/events.ts';
import type { Claim } from '../payment/claim.ts';
import { evolveEntry, isBalanced, type LedgerEntry, NO_ENTRY, type Sums } from '../payment/ledger.ts';
import type { Payment } from '../payment/state.ts';
import type { Fault } from './finding.ts';

/** A payment's stream as read so far. `servedBy`: the job that started with it. */
export type PaymentHistory = LedgerEntry & { readonly servedBy: string | null };

export const NO_HISTORY: PaymentHistory = { ...NO_ENTRY, servedBy: null };

export function judgePayment(
  history: PaymentHistory,
  event: PaymentEvent,
): { readonly history: PaymentHistory; readonly fault: Fault | null } {
  const entry = evolveEntry(history, event);
  const fault =
    entry.payment === history.payment
      ? impossible('it cannot follow in the state of the payment')
      : faultOf(history.payment, event);
  return { history: { ...history, ...entry }, fault };
}

const impossible = (message: string): Fault => ({ kind: 'payment_event_impossible', message });

/** The fault of an event that the payment's state allows. */
function faultOf(payment: Payment, event: PaymentEvent): Fault | null {
  if (event.type === 'PaymentReserved' || payment.status === 'absent') return null;
  const { reserved } = payment;
  if (event.data.jobId !== reserved.jobId)
    return impossible(`it is of ${event.data.jobId}, and the payment is reserved for another job`);
  if (event.type !== 'PaymentRefunded') return null;
  const { network, asset, amount, payer } = event.data;
  const fields = differing({ network, asset, amount, payer }, reserved);
  return fields.length === 0
    ? null
    : { kind: 'payment_mismatch', message: `refund and charge differ in ${fields.join(', ')}` };
}

/** null: charged = served + refunded + open. */
export function booksFault(sums: Sums): Fault | null {
  if (isBalanced(sums)) return null;
  const { network, asset, charged, served, refunded, open } = sums;
  const message = `the payments in ${asset} on ${network} do not balance: charged ${charged} is not served ${served} + refunded ${refunded} + open ${open}`;
  return { kind: 'books_unbalanced', message };
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
  // A refund can be recorded while the job is being started; its request is then not sent.
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
