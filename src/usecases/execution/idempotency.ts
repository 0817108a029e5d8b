// What the event log already contains of a request: by its payment, then by its idempotency key. Streams decide, never
// a read model.

import { decodeEvent } from '#src/domain/event-codec.ts';
import type { IdempotencyKeyClaimed, PaymentDeferred } from '#src/domain/events/payment.ts';
import type { CompletedJob } from '#src/domain/job/state.ts';
import { type Claim, type ReleaseReason, retentionOver } from '#src/domain/payment/claim.ts';
import {
  type Authorized,
  type BoundPayment,
  isBound,
  isRecorded,
  isReturned,
  isUsedBefore,
  type Payment,
  type ReturnedPayment,
} from '#src/domain/payment/state.ts';
import { ALLOWED, type Allowed, isRefused, type Refused, refused } from '#src/domain/refusal.ts';
import type { Clock } from '#src/ports/clock.ts';
import type { EventLog } from '#src/ports/event-log.ts';
import { CLAIM, JOB, type Loaded, load, PAYMENT, type View } from '#src/usecases/process/stream.ts';
import type { GuessLimit } from './process-limits.ts';
import type { Recovery } from './recover-jobs.ts';

export type LookUpDeps = {
  readonly log: EventLog;
  readonly clock: Pick<Clock, 'now'>;
  readonly guesses: GuessLimit;
  /** Reports a job that runs: its owner may be dead, and the read models unavailable. */
  readonly foundRunning: Recovery['foundRunning'];
};

export type Lookup = {
  readonly paymentStream: string | null;
  readonly claimStream: string | null;
  readonly fingerprint: string;
  /** Whose run it is; null: of no schedule. */
  readonly scheduleId: string | null;
  /** Of the payment presented, what network, asset, payer and nonce do not name; null: none is presented. */
  readonly authorization: Authorized | null;
};

/** The streams as read, for the appends that follow. */
export type Streams = {
  readonly payment: View<Payment> | null;
  readonly claim: View<Claim> | null;
  /** Why the key may be taken from its holder; null: it may not, or is free. */
  readonly release: ReleaseReason | null;
};

/** `by`: what it was found by. A payment proves its payer; a key only if the payer is proven. */
export type Known =
  | { readonly kind: 'completed'; readonly by: Found; readonly job: CompletedJob }
  | { readonly kind: 'refused'; readonly by: Found; readonly refusal: Refused }
  /** Accepted once, nothing sent yet: continues under its own job id and is not judged again. */
  | { readonly kind: 'resume'; readonly by: Found; readonly jobId: string; readonly streams: Streams }
  /** The same request, paid for with another authorization whose job has not started: that one is reconciled first. */
  | { readonly kind: 'held'; readonly by: 'key'; readonly jobId: string; readonly streams: HolderStreams }
  | { readonly kind: 'new'; readonly streams: Streams };

type Found = 'payment' | 'key';

/** `payment`: of the holder. */
type HolderStreams = Streams & { readonly payment: View<BoundPayment> };

export async function findKnown(deps: LookUpDeps, lookup: Lookup): Promise<Known> {
  const { paymentStream, claimStream } = lookup;
  const [payment, claim] = await Promise.all([
    paymentStream === null ? null : load(deps, PAYMENT, paymentStream),
    claimStream === null ? null : load(deps, CLAIM, claimStream),
  ]);
  const pledged = payment === null ? ALLOWED : judgePledge(payment, lookup.scheduleId);
  if (isRefused(pledged)) return { kind: 'refused', by: 'payment', refusal: pledged };
  if (payment !== null && (isBound(payment.state) || isReturned(payment.state))) {
    return byPayment(deps, lookup, { ...payment, state: payment.state }, claim);
  }
  if (claim === null || claim.state.status === 'free') {
    return { kind: 'new', streams: { payment, claim, release: null } };
  }
  return byClaim(deps, lookup, payment, { ...claim, state: claim.state });
}

/** The schedule's run that a payment was pledged to, whatever became of it since; null: it is for any call. */
export function findPledge({ events }: Pick<Loaded<Payment>, 'events'>): PaymentDeferred | null {
  for (const recorded of events) {
    const event = decodeEvent(recorded);
    if (event?.type === 'PaymentDeferred') return event.data;
  }
  return null;
}

/** A payment buys runs of the schedule that it was pledged to, or calls, and never both. */
function judgePledge(payment: Loaded<Payment>, scheduleId: string | null): Allowed | Refused {
  if ((findPledge(payment)?.scheduleId ?? null) !== scheduleId) return paymentReused();
  const { state } = payment;
  if (scheduleId === null) return ALLOWED;
  const isOver = state.status === 'rejected' || state.status === 'released';
  if (isOver) return paymentOver(state.reason);
  return isUsedBefore(state) ? paymentOver('unserved') : ALLOWED;
}

/** Of a run: its payment buys nothing any more. `reason`: a code. */
export const paymentOver = (reason: string) =>
  refused('payment_required', 'The payment of this run buys nothing any more.', { details: { reason } });

async function byPayment(
  deps: LookUpDeps,
  lookup: Lookup,
  payment: Loaded<BoundPayment | ReturnedPayment>,
  claim: Loaded<Claim> | null,
): Promise<Known> {
  const { state } = payment;
  const { reserved } = state;
  const job = await findJob(deps, reserved.jobId);
  const reused = { kind: 'refused', by: 'payment', refusal: paymentReused() } as const;
  // Closed: right and wrong requests get the same answer. An unfinished job is still owed to the right request.
  if (job?.kind === 'completed' && deps.guesses.isClosed(payment.stream)) return reused;
  // A request without a copy of the payment learns nothing by it: it is no guess and must not close the payment.
  if (lookup.authorization === null || !isRecorded(lookup.authorization, reserved)) return reused;
  if (reserved.fingerprint !== lookup.fingerprint) {
    deps.guesses.count(payment.stream);
    return reused;
  }
  if (job !== null) return { ...job, by: 'payment' };
  // A payment in refund buys nothing; a result that it bought before is replayed.
  if (isReturned(state)) return { kind: 'refused', by: 'payment', refusal: paymentReturned(state.status) };
  return resume(deps, { ...payment, state }, claim);
}

/** May take a key that has become free, and gives itself up for a lost one only if nothing can be settled yet. */
async function resume(
  deps: LookUpDeps,
  payment: Loaded<BoundPayment>,
  claim: Loaded<Claim> | null,
): Promise<Known> {
  const { reserved, status } = payment.state;
  const { jobId } = reserved;
  const resumed = (release: ReleaseReason | null) =>
    ({ kind: 'resume', by: 'payment', jobId, streams: { payment, claim, release } }) as const;
  if (claim?.state.status !== 'held') return resumed(null);
  if (claim.state.claimed.jobId === jobId) return resumed(endOfClaim(claim, payment));
  const holder = claim.state.claimed;
  const { job, release } = await lookAtHolder(deps, holder);
  if (release !== null || status === 'reserved') return resumed(release);
  const waits = job?.kind !== 'completed' && holder.fingerprint === reserved.fingerprint;
  const refusal = waits ? inProgress(job === null ? null : holder.jobId) : keyLost();
  return { kind: 'refused', by: 'payment', refusal };
}

/**
 * Why the claim of a job has ended whose payment is bound; null: it has not. A refusal has ended it, also if the money has
 * come all the same: another call may be taking the key, so that the job has to claim it again.
 */
function endOfClaim(claim: Loaded<Claim>, payment: Loaded<BoundPayment>): ReleaseReason | null {
  const rejected = payment.events.findLast(({ type }) => type === 'PaymentRejected');
  const claimed = claim.events.at(-1);
  return rejected && claimed && claimed.position < rejected.position ? 'payment_rejected' : null;
}

async function byClaim(
  deps: LookUpDeps,
  { fingerprint }: Lookup,
  payment: View<Payment> | null,
  claim: Loaded<Extract<Claim, { status: 'held' }>>,
): Promise<Known> {
  const holder = claim.state.claimed;
  const { jobId } = holder;
  const { job, release, paid } = await lookAtHolder(deps, holder);
  const streams: Streams = { payment, claim, release };
  if (release !== null) return { kind: 'new', streams };
  if (holder.fingerprint !== fingerprint) return { kind: 'refused', by: 'key', refusal: conflict() };
  if (job !== null) return { ...job, by: 'key' };
  // Claimed and never started: without a payment nothing can have been sent or charged, so any repeat may continue.
  if (holder.paymentStream === null) return { kind: 'resume', by: 'key', jobId, streams };
  if (paid?.state.status === 'refunding') return { kind: 'refused', by: 'key', refusal: holderRefunding() };
  if (paid === null || !isBound(paid.state)) return { kind: 'refused', by: 'key', refusal: inProgress(null) };
  const bound = { ...paid, state: paid.state };
  return {
    kind: 'held',
    by: 'key',
    jobId,
    streams: { payment: bound, claim, release: endOfClaim(claim, bound) },
  };
}

type Holder = {
  readonly job: KnownJob | null;
  /** Why its key may be taken; null: it may not. */
  readonly release: ReleaseReason | null;
  /** Its payment's stream; null: it has none, or its job exists. */
  readonly paid: Loaded<Payment> | null;
};

async function lookAtHolder(
  deps: LookUpDeps,
  { jobId, paymentStream }: IdempotencyKeyClaimed,
): Promise<Holder> {
  const job = await findJob(deps, jobId);
  if (job?.kind === 'completed') {
    const over = retentionOver(job.job.completed.completedAt, deps.clock.now());
    return { job, release: over ? 'retention_over' : null, paid: null };
  }
  if (job !== null || paymentStream === null) return { job, release: null, paid: null };
  const paid = await load(deps, PAYMENT, paymentStream);
  const release = releaseOf(paid.state, jobId);
  // A job that started before its payment was refunded may have sent its request; one that starts later sends nothing.
  if (paid.state.status !== 'refunded' || release === null) return { job, release, paid };
  const started = await findJob(deps, jobId);
  return { job: started, release: started === null ? release : null, paid };
}

/**
 * A key ends with its own payment's Rejected or Released, also if a crash hid the IdempotencyKeyReleased that follows; and
 * with its refund, if the job never started: that payment buys nothing any more. A refund that has only begun may be
 * cancelled, and then the payment buys its job.
 */
function releaseOf(payment: Payment, jobId: string): ReleaseReason | null {
  if (payment.status === 'absent') return null;
  // Reserved again for another job: the claim's own reservation has ended.
  if (payment.reserved.jobId !== jobId) return 'payment_released';
  if (payment.status === 'rejected') return 'payment_rejected';
  return payment.status === 'released' || payment.status === 'refunded' ? 'payment_released' : null;
}

type KnownJob =
  | { readonly kind: 'completed'; readonly job: CompletedJob }
  | { readonly kind: 'refused'; readonly refusal: Refused };

async function findJob(deps: LookUpDeps, jobId: string): Promise<KnownJob | null> {
  const { state } = await load(deps, JOB, jobId);
  if (state.status === 'absent') return null;
  if (state.status === 'running') {
    deps.foundRunning(jobId);
    return { kind: 'refused', refusal: inProgress(jobId) };
  }
  return { kind: 'completed', job: state };
}

/** `jobId` becomes `details.links.job` in the response; null: no job has started, so there is nothing to link to. */
export function inProgress(jobId: string | null): Refused<'idempotency_in_progress'> {
  return refused(
    'idempotency_in_progress',
    'The first request with this key or payment is still in progress.',
    { retryAfterSeconds: 2, ...(jobId === null ? {} : { details: { jobId } }) },
  );
}

const holderRefunding = () =>
  refused(
    'idempotency_in_progress',
    'The refund of the payment of the first call with this idempotencyKey has begun, and nothing was charged for this call: use another idempotencyKey, or repeat once the refund is recorded.',
    { retryAfterSeconds: 60, details: { paymentState: 'refunding' } },
  );

const conflict = () =>
  refused(
    'idempotency_conflict',
    'This idempotencyKey (or payment identifier) was used for another request of yours.',
  );

const keyLost = () =>
  refused(
    'idempotency_conflict',
    'This payment is in and not served, and another job of yours holds its idempotencyKey.',
  );

export const paymentReused = () =>
  refused(
    'payment_reused',
    'This payment was made for another request: repeat that one, or sign a new payment.',
  );

const paymentReturned = (paymentState: ReturnedPayment['status']) =>
  refused(
    'payment_reused',
    paymentState === 'refunding'
      ? 'The refund of this payment has begun, so it buys nothing: sign a new payment.'
      : 'This payment was refunded: sign a new payment.',
    { details: { paymentState } },
  );
