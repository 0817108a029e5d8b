// Whether an idempotency key was held by one job at a time, and given up only for a reason that the record bears out.
import type { ClaimEvent, EventOf } from '../events.ts';
import type { JobStarted } from '../job/events.ts';
import { type Claim, evolveClaim } from '../payment/claim.ts';
import type { IdempotencyKeyClaimed } from '../payment/events.ts';
import type { Fault } from './event-location.ts';
import type { PaymentStory } from './judge-payment.ts';

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
    const held = claim.status === 'held' ? `${claim.claimed.jobId} holds the key` : 'nobody holds the key';
    return { claim, faults: [impossible(`${held} here`)] };
  }
  if (event.type === 'IdempotencyKeyClaimed') return { claim: next, faults: claimFaults(event.data, facts) };
  const holder = claim.status === 'held' ? claim.claimed : null;
  return { claim: next, faults: holder === null ? [] : releaseFaults(holder, event.data, facts) };
}

const impossible = (message: string): Fault => ({ kind: 'claim_event_impossible', message });

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
    if (job === 'running') return [impossible('the key is taken from a job that still runs')];
    const message = `the key was kept for ${holder.jobId} after its end, and the log does not have that job`;
    return [{ kind: 'job_missing', message }];
  }
  if (payment?.endedFor.includes(holder.jobId)) return [];
  return [impossible('the key is taken because of a payment that has not ended')];
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
