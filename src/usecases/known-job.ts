// What the log already knows of a request: by its payment, then by its key. Streams decide, never a read model.
import type { Claim, ReleaseReason } from '../domain/payment/claim.ts';
import { retentionOver } from '../domain/payment/claim.ts';
import { isBound, type Payment } from '../domain/payment/state.ts';
import { type Refused, refused } from '../domain/refusal.ts';
import type { Clock } from '../ports/clock.ts';
import type { EventLog } from '../ports/event-log.ts';
import type { Closed } from './close-job.ts';
import { loadClaim, loadJob, loadPayment, type View } from './journal.ts';

export type KnownDeps = { readonly log: EventLog; readonly clock: Clock };

export type Lookup = {
  readonly paymentStream: string | null;
  readonly claimStream: string | null;
  readonly fingerprint: string;
};

/** The streams as read, for the appends that follow. */
export type Streams = {
  readonly payment: View<Payment> | null;
  readonly claim: View<Claim> | null;
  /** Why the key may be taken from its holder, where it may. */
  readonly release: ReleaseReason | null;
};

export type Known =
  | { readonly kind: 'completed'; readonly closed: Closed }
  | { readonly kind: 'refused'; readonly refusal: Refused }
  /** Accepted once, nothing sent yet: goes on under its own job id without being judged again. */
  | { readonly kind: 'resume'; readonly jobId: string; readonly streams: Streams }
  | { readonly kind: 'new'; readonly streams: Streams };

export async function findKnown(deps: KnownDeps, lookup: Lookup): Promise<Known> {
  const { paymentStream, claimStream, fingerprint } = lookup;
  const payment = paymentStream === null ? null : await loadPayment(deps.log, paymentStream);
  const claim = claimStream === null ? null : await loadClaim(deps.log, claimStream);
  if (payment !== null && isBound(payment.state)) {
    const { reserved } = payment.state;
    if (reserved.fingerprint !== fingerprint) return { kind: 'refused', refusal: paymentReused() };
    const job = await findJob(deps, reserved.jobId);
    return job ?? { kind: 'resume', jobId: reserved.jobId, streams: { payment, claim, release: null } };
  }
  if (claim === null || claim.state.status === 'free') {
    return { kind: 'new', streams: { payment, claim, release: null } };
  }
  return byClaim(deps, fingerprint, payment, { ...claim, state: claim.state });
}

type HeldClaim = View<Extract<Claim, { status: 'held' }>>;

async function byClaim(
  deps: KnownDeps,
  fingerprint: string,
  payment: View<Payment> | null,
  claim: HeldClaim,
): Promise<Known> {
  const holder = claim.state.claimed;
  const streams = (release: ReleaseReason | null): Streams => ({ payment, claim, release });
  const job = await findJob(deps, holder.jobId);
  if (job?.kind === 'completed') {
    const { completedAt } = job.closed.job.completed;
    if (retentionOver(completedAt, deps.clock.now()))
      return { kind: 'new', streams: streams('retention_over') };
  }
  if (job === null && holder.paymentStream !== null) {
    const release = await releaseOf(deps, holder.paymentStream, holder.jobId);
    if (release !== null) return { kind: 'new', streams: streams(release) };
  }
  if (holder.fingerprint !== fingerprint) return { kind: 'refused', refusal: conflict() };
  if (job !== null) return job;
  // Claimed and never started: without a payment nothing can have been sent or charged, so any repeat may go on.
  if (holder.paymentStream === null) return { kind: 'resume', jobId: holder.jobId, streams: streams(null) };
  return { kind: 'refused', refusal: inProgress(holder.jobId) };
}

/** A key ends with its own payment's Rejected or Released, also where a crash hid the KeyReleased that follows. */
async function releaseOf(
  deps: KnownDeps,
  paymentStream: string,
  jobId: string,
): Promise<ReleaseReason | null> {
  const { state } = await loadPayment(deps.log, paymentStream);
  if (state.status === 'absent') return null;
  // Reserved anew for another job: the claim's own reservation has ended.
  if (state.reserved.jobId !== jobId) return 'payment_released';
  if (state.status === 'rejected') return 'payment_rejected';
  return state.status === 'released' ? 'payment_released' : null;
}

async function findJob(
  deps: KnownDeps,
  jobId: string,
): Promise<Extract<Known, { kind: 'completed' | 'refused' }> | null> {
  const { state, events } = await loadJob(deps.log, jobId);
  if (state.status === 'absent') return null;
  if (state.status === 'running') return { kind: 'refused', refusal: inProgress(jobId) };
  return { kind: 'completed', closed: { job: state, position: events.at(-1)?.position ?? '' } };
}

/** `jobId` becomes `details.links.job` in the answer; the job may not have started yet. */
export function inProgress(jobId: string): Refused<'idempotency_in_progress'> {
  return refused(
    'idempotency_in_progress',
    'The first request with this key or payment is still in progress.',
    {
      retryAfterSeconds: 2,
      details: { jobId },
    },
  );
}

const conflict = () =>
  refused('idempotency_conflict', 'This idempotencyKey was used for another request of yours.');

const paymentReused = () =>
  refused('payment_reused', 'This payment was made for another request: repeat that one, or pay anew.');
