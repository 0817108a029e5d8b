// From a presented payment to a settled one: reserve, hold the key, settle once. Every step is durable before the next
// one acts, and a step that was reached is never taken back by an answer that may be an echo of our own success.
import { claimKey } from '#src/domain/payment/claim.ts';
import { isBound } from '#src/domain/payment/state.ts';
import { WrongExpectedVersion } from '#src/ports/event-log.ts';
import type { PresentedPayment } from '#src/ports/payments.ts';
import { appendUntilKnown, envelope, loadPayment } from '#src/usecases/event-streams.ts';
import type { Streams } from './idempotency.ts';
import { type Collected, type SettleDeps, type Settling, settlePayment } from './settle-payment.ts';

export type CollectDeps = SettleDeps;

export type Collecting = Pick<Settling, 'jobId' | 'claimStream' | 'account' | 'patiently'> & {
  readonly fingerprint: string;
  readonly presented: PresentedPayment | null;
  readonly paymentStream: string | null;
  readonly streams: Streams;
  /** This very call reserved the payment in an earlier round and has not settled yet. */
  readonly reservedHere: boolean;
};

export async function collectPayment(deps: CollectDeps, it: Collecting): Promise<Collected> {
  try {
    const fresh = (await reserve(deps, it)) || it.reservedHere;
    const lost = await holdKey(deps, it);
    if (lost) return { kind: 'again' };
    const { presented, paymentStream } = it;
    if (presented === null || paymentStream === null) return { kind: 'collected', payment: null };
    return await settlePayment(deps, { ...it, presented, paymentStream }, fresh);
  } catch (error) {
    if (error instanceof WrongExpectedVersion) return { kind: 'again' };
    throw error;
  }
}

const now = (deps: CollectDeps) => new Date(deps.clock.now()).toISOString();

/** true where this call reserved the payment, so that its settle call will be the first. */
async function reserve(deps: CollectDeps, it: Collecting): Promise<boolean> {
  const view = it.streams.payment;
  if (it.presented === null || view === null || isBound(view.state)) return false;
  const { scheme, network, asset, amount, payTo, payer, nonce, validBefore, payloadHash, x402Version } =
    it.presented;
  const { jobId, fingerprint } = it;
  const data = { scheme, network, asset, amount, payTo, payer, nonce, validBefore, payloadHash, x402Version };
  const reserved = { v: 1 as const, jobId, fingerprint, ...data, owner: deps.owner, reservedAt: now(deps) };
  const events = envelope(deps, [{ type: 'PaymentReserved', data: reserved }], jobId);
  await it.patiently(appendUntilKnown(deps, view.stream, view.expected, events));
  return true;
}

/** true where the key went to another: then this job's payment, not yet settled, is given up. */
async function holdKey(deps: CollectDeps, it: Collecting): Promise<boolean> {
  const view = it.streams.claim;
  if (view === null) return false;
  const { jobId, fingerprint, paymentStream } = it;
  const facts = { jobId, fingerprint, paymentStream, claimedAt: now(deps) };
  const claiming = claimKey(facts, it.streams.release, view.state);
  if ('lostTo' in claiming) {
    await release(deps, it, claiming.lostTo.jobId);
    return true;
  }
  if (claiming.length > 0)
    await it.patiently(appendUntilKnown(deps, view.stream, view.expected, envelope(deps, claiming, jobId)));
  return false;
}

/**
 * Only what is still reserved: the key is held before the settle call, so nothing was settled under a key that this job
 * never had. Beyond that, money may have moved.
 */
async function release(deps: CollectDeps, it: Collecting, lostKeyTo: string): Promise<void> {
  const { jobId, paymentStream } = it;
  if (paymentStream === null) return;
  const { state, expected } = await loadPayment(deps.log, paymentStream);
  if (state.status !== 'reserved' || state.reserved.jobId !== jobId) return;
  const data = { v: 1 as const, jobId, lostKeyTo, releasedAt: now(deps) };
  const events = envelope(deps, [{ type: 'PaymentReleased', data }], jobId);
  await it.patiently(appendUntilKnown(deps, paymentStream, expected, events));
}
