// What the log already knows of a request: by its payment, then by its key. Streams decide, never a read model.
import type { Claim, ReleaseReason } from '#src/domain/payment/claim.ts';
import { retentionOver } from '#src/domain/payment/claim.ts';
import type { IdempotencyKeyClaimed, PaymentReserved } from '#src/domain/payment/events.ts';
import { type BoundPayment, isBound, type Payment, type RefundedPayment } from '#src/domain/payment/state.ts';
import { type Refused, refused } from '#src/domain/refusal.ts';
import type { Clock } from '#src/ports/clock.ts';
import type { EventLog } from '#src/ports/event-log.ts';
import { loadClaim, loadJob, loadPayment, type View } from '#src/usecases/event-streams.ts';
import type { Closed } from './close-job.ts';
import type { MismatchGuard } from './guess-limit.ts';

export type KnownDeps = {
  readonly log: EventLog;
  readonly clock: Clock;
  readonly mismatches: MismatchGuard;
};

export type Lookup = {
  readonly paymentStream: string | null;
  readonly claimStream: string | null;
  readonly fingerprint: string;
  /** Of the payment presented: another authorization may have the same nonce. null: none is presented. */
  readonly authorization: Authorized | null;
  /** What a known payment's must equal; null: the payer's own key signed, so every copy is the payer's. */
  readonly payloadHash: string | null;
};

/** What one authorization moves, to whom and until when: network, asset, payer and nonce name its stream. */
export type Authorized = Pick<PaymentReserved, 'amount' | 'payTo' | 'validBefore'>;

/** The streams as read, for the appends that follow. */
export type Streams = {
  readonly payment: View<Payment> | null;
  readonly claim: View<Claim> | null;
  /** Why the key may be taken from its holder, where it may. */
  readonly release: ReleaseReason | null;
};

/** `by`: what it was found by. A payment proves its payer; a key only with a payer that is proven. */
export type Known =
  | { readonly kind: 'completed'; readonly by: Found; readonly closed: Closed }
  | { readonly kind: 'refused'; readonly by: Found; readonly refusal: Refused }
  /** Accepted once, nothing sent yet: goes on under its own job id without being judged again. */
  | { readonly kind: 'resume'; readonly by: Found; readonly jobId: string; readonly streams: Streams }
  | { readonly kind: 'new'; readonly streams: Streams };

type Found = 'payment' | 'key';

export async function findKnown(deps: KnownDeps, lookup: Lookup): Promise<Known> {
  const { paymentStream, claimStream } = lookup;
  const payment = paymentStream === null ? null : await loadPayment(deps.log, paymentStream);
  const claim = claimStream === null ? null : await loadClaim(deps.log, claimStream);
  if (payment !== null && (isBound(payment.state) || payment.state.status === 'refunded')) {
    return byPayment(deps, lookup, { ...payment, state: payment.state }, claim);
  }
  if (claim === null || claim.state.status === 'free') {
    return { kind: 'new', streams: { payment, claim, release: null } };
  }
  return byClaim(deps, lookup, payment, { ...claim, state: claim.state });
}

async function byPayment(
  deps: KnownDeps,
  lookup: Lookup,
  payment: View<BoundPayment | RefundedPayment>,
  claim: View<Claim> | null,
): Promise<Known> {
  const { state } = payment;
  const { reserved } = state;
  const job = await findJob(deps, reserved.jobId);
  // Closed: right and wrong requests get the same answer. An unfinished job is still owed to whoever has the right one.
  if (job?.kind === 'completed' && deps.mismatches.isClosed(payment.stream)) {
    return { kind: 'refused', by: 'payment', refusal: paymentReused() };
  }
  const reused = { kind: 'refused', by: 'payment', refusal: paymentReused() } as const;
  // Whoever has no copy of it learns nothing by it, whatever the request: no guess, and it must not close the payment.
  if (!isCopy(lookup, reserved)) return reused;
  if (reserved.fingerprint !== lookup.fingerprint) {
    deps.mismatches.count(payment.stream);
    return reused;
  }
  if (job !== null) return { ...job, by: 'payment' };
  // A refunded payment buys nothing any more; a result that it bought before is replayed.
  return state.status === 'refunded' ? reused : resume(deps, { ...payment, state }, claim);
}

/** The authorization that was recorded, and by a signature that only its payer can have made. */
export function isCopy({ authorization, payloadHash }: Lookup, reserved: PaymentReserved): boolean {
  return (
    authorization !== null &&
    authorization.amount === reserved.amount &&
    authorization.payTo === reserved.payTo &&
    authorization.validBefore === reserved.validBefore &&
    (payloadHash === null || payloadHash === reserved.payloadHash)
  );
}

/** It may take a key that has become free, and gives itself up for a lost one only where nothing can be settled yet. */
async function resume(
  deps: KnownDeps,
  payment: View<BoundPayment>,
  claim: View<Claim> | null,
): Promise<Known> {
  const { reserved, status } = payment.state;
  const { jobId } = reserved;
  const resumed = (release: ReleaseReason | null) =>
    ({ kind: 'resume', by: 'payment', jobId, streams: { payment, claim, release } }) as const;
  if (claim?.state.status !== 'held' || claim.state.claimed.jobId === jobId) return resumed(null);
  const holder = claim.state.claimed;
  const { job, release } = await lookAtHolder(deps, holder);
  if (release !== null || status === 'reserved') return resumed(release);
  const waits = job?.kind !== 'completed' && holder.fingerprint === reserved.fingerprint;
  return { kind: 'refused', by: 'payment', refusal: waits ? inProgress(holder.jobId) : keyLost() };
}

type HeldClaim = View<Extract<Claim, { status: 'held' }>>;

async function byClaim(
  deps: KnownDeps,
  { fingerprint }: Lookup,
  payment: View<Payment> | null,
  claim: HeldClaim,
): Promise<Known> {
  const holder = claim.state.claimed;
  const { jobId } = holder;
  const { job, release } = await lookAtHolder(deps, holder);
  const streams: Streams = { payment, claim, release };
  if (release !== null) return { kind: 'new', streams };
  if (holder.fingerprint !== fingerprint) return { kind: 'refused', by: 'key', refusal: conflict() };
  if (job !== null) return { ...job, by: 'key' };
  // Claimed and never started: without a payment nothing can have been sent or charged, so any repeat may go on.
  if (holder.paymentStream === null) return { kind: 'resume', by: 'key', jobId, streams };
  return { kind: 'refused', by: 'key', refusal: inProgress(jobId) };
}

/** The holder's job, and why its key may be taken, where it may. */
async function lookAtHolder(
  deps: KnownDeps,
  { jobId, paymentStream }: IdempotencyKeyClaimed,
): Promise<{ readonly job: KnownJob | null; readonly release: ReleaseReason | null }> {
  const job = await findJob(deps, jobId);
  if (job?.kind === 'completed') {
    const over = retentionOver(job.closed.job.completed.completedAt, deps.clock.now());
    return { job, release: over ? 'retention_over' : null };
  }
  const release = job === null && paymentStream !== null ? await releaseOf(deps, paymentStream, jobId) : null;
  return { job, release };
}

/** A key ends with its own payment's Rejected or Released, also where a crash hid the IdempotencyKeyReleased that follows. */
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

type KnownJob =
  | { readonly kind: 'completed'; readonly closed: Closed }
  | { readonly kind: 'refused'; readonly refusal: Refused };

async function findJob(deps: KnownDeps, jobId: string): Promise<KnownJob | null> {
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

const keyLost = () =>
  refused(
    'idempotency_conflict',
    'This payment is in and not served, and another job of yours holds its idempotencyKey.',
  );

const paymentReused = () =>
  refused('payment_reused', 'This payment was made for another request: repeat that one, or pay anew.');
