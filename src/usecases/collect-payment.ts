// From a presented payment to a settled one: reserve, hold the key, settle once. Every step is durable before the next
// one acts, and a step that was reached is never taken back by an answer that may be an echo of our own success.
import type { PaymentFacts } from '../domain/event-fields.ts';
import { claimKey, releaseKey } from '../domain/payment/claim.ts';
import {
  type BoundPayment,
  isBound,
  type Payment,
  reconcile,
  recordSettleAnswer,
} from '../domain/payment/state.ts';
import { Fault, type Refused, refused } from '../domain/refusal.ts';
import { EventLogUnavailable, WrongExpectedVersion } from '../ports/event-log.ts';
import type { Payments, PresentedPayment } from '../ports/payments.ts';
import {
  appendUntilKnown,
  envelope,
  type JournalDeps,
  loadClaim,
  loadPayment,
  type View,
} from './journal.ts';
import { inProgress, type Streams } from './known-job.ts';
import type { StreamWatch } from './stream-watch.ts';

export type CollectDeps = JournalDeps & {
  readonly payments: Payments;
  readonly owner: string;
  /** Payment streams met in the middle of another's settlement. */
  readonly watch: StreamWatch;
};

export type Collecting = {
  readonly jobId: string;
  readonly fingerprint: string;
  readonly claimStream: string | null;
  readonly presented: PresentedPayment | null;
  readonly paymentStream: string | null;
  readonly streams: Streams;
  /** This very call reserved the payment in an earlier round and has not settled yet. */
  readonly reservedHere: boolean;
  /** Waits for an append as long as the caller does; rejects where the call must go no further. */
  readonly patiently: <T>(append: Promise<T>) => Promise<T>;
};

export type Collected =
  /** The key is held and the money is in (or none is asked): the job may start. */
  | { readonly kind: 'collected'; readonly payment: PaymentFacts | null }
  /** Another moved a stream first: look again. */
  | { readonly kind: 'again' }
  | { readonly kind: 'refused'; readonly refusal: Refused };

/** A settlement of another process that is younger than this (by our own watch) may still be under way. */
const SETTLEMENT_WATCH_MS = 45_000;

export async function collectPayment(deps: CollectDeps, it: Collecting): Promise<Collected> {
  try {
    const fresh = (await reserve(deps, it)) || it.reservedHere;
    const lost = await holdKey(deps, it);
    if (lost) return { kind: 'again' };
    if (it.presented === null || it.paymentStream === null) return { kind: 'collected', payment: null };
    return await settle(deps, it.presented, it.paymentStream, it, fresh);
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

async function release(deps: CollectDeps, it: Collecting, lostKeyTo: string): Promise<void> {
  const { jobId, paymentStream } = it;
  if (paymentStream === null) return;
  const view = await loadPayment(deps.log, paymentStream);
  if (!isBound(view.state) || view.state.reserved.jobId !== jobId || view.state.status === 'settled') return;
  const data = { v: 1 as const, jobId, lostKeyTo, releasedAt: now(deps) };
  const events = envelope(deps, [{ type: 'PaymentReleased', data }], jobId);
  await it.patiently(appendUntilKnown(deps, paymentStream, view.expected, events));
}

async function settle(
  deps: CollectDeps,
  presented: PresentedPayment,
  stream: string,
  it: Collecting,
  fresh: boolean,
): Promise<Collected> {
  const { jobId } = it;
  const view = await loadPayment(deps.log, stream);
  const payment = view.state;
  if (!isBound(payment) || payment.reserved.jobId !== jobId) return { kind: 'again' };
  if (payment.status === 'settled') return { kind: 'collected', payment: paymentFacts(payment) };
  // Whoever was frozen after its reservation may find that another took the settlement over.
  const first = fresh && payment.status === 'reserved';
  if (!first) {
    const young = deps.watch.unchangedFor(stream, String(view.expected)) < SETTLEMENT_WATCH_MS;
    if (payment.status !== 'unknown' && young) return { kind: 'refused', refusal: inProgress(jobId) };
    const found = reconcile(await deps.payments.lookUp(presented), payment, now(deps));
    if (found !== null) return settleFact(deps, stream, it, () => found);
    const data = { v: 1 as const, jobId, owner: deps.owner, retriedAt: now(deps) };
    const events = envelope(deps, [{ type: 'SettlementRetried', data }], jobId);
    await it.patiently(appendUntilKnown(deps, stream, view.expected, events));
  }
  const answer = await deps.payments.settle(presented);
  const at = now(deps);
  // A spent nonce alone does not tell a transfer to us from a cancellation: the chain does, where it can be asked.
  const spent = answer.outcome === 'nonce_used' ? await deps.payments.lookUp(presented) : null;
  const seen = spent === null ? null : reconcile(spent, payment, at);
  if (seen !== null) return settleFact(deps, stream, it, () => seen);
  return settleFact(deps, stream, it, (onlyCall) =>
    recordSettleAnswer(answer, { first: first && onlyCall, jobId, at }),
  );
}

type SettleFact = ReturnType<typeof recordSettleAnswer>;

/**
 * A settlement fact is never dropped: on a conflict the stream is read again and the fact appended unless Settled
 * stands. Where another retried meanwhile, ours was not the only call, and a terminal "no" no longer counts.
 */
async function settleFact(
  deps: CollectDeps,
  stream: string,
  it: Collecting,
  factOf: (onlyCall: boolean) => SettleFact,
): Promise<Collected> {
  const { jobId } = it;
  for (;;) {
    const view = await readSurely(deps, stream);
    const payment = view.state;
    if (!isBound(payment) || payment.reserved.jobId !== jobId) return { kind: 'again' };
    if (payment.status === 'settled') return { kind: 'collected', payment: paymentFacts(payment) };
    const fact = factOf(payment.status === 'reserved');
    try {
      await appendUntilKnown(deps, stream, view.expected, envelope(deps, [fact], jobId));
    } catch (error) {
      if (error instanceof WrongExpectedVersion) continue;
      throw error;
    }
    return concluded(deps, it, payment, fact);
  }
}

/** The log may be away just when the money has moved: the fact in hand waits for it. */
async function readSurely(deps: CollectDeps, stream: string): Promise<View<Payment>> {
  for (;;) {
    try {
      return await loadPayment(deps.log, stream);
    } catch (error) {
      if (!(error instanceof EventLogUnavailable)) throw error;
      await deps.clock.sleep(500);
    }
  }
}

async function concluded(
  deps: CollectDeps,
  it: Collecting,
  payment: BoundPayment,
  fact: SettleFact,
): Promise<Collected> {
  switch (fact.type) {
    case 'PaymentSettled': {
      const { reserved } = payment;
      return {
        kind: 'collected',
        payment: paymentFacts({ status: 'settled', reserved, settled: fact.data }),
      };
    }
    case 'PaymentRejected': {
      await freeKey(deps, it);
      const { reason } = fact.data;
      const refusal = refused('payment_required', 'The payment was not accepted.', { details: { reason } });
      return { kind: 'refused', refusal };
    }
    case 'SettlementUnknown':
      throw new Fault(
        'payment_unconfirmed',
        'The payment is not confirmed yet: repeat with the same payment header.',
        {
          retryAfterSeconds: 5,
        },
      );
    default:
      return fact satisfies never;
  }
}

/** Best effort: whoever meets the claim later reads the same from the payment's stream. */
async function freeKey(deps: CollectDeps, { claimStream, jobId }: Collecting): Promise<void> {
  if (claimStream === null) return;
  try {
    const { state, expected } = await loadClaim(deps.log, claimStream);
    if (state.status !== 'held' || state.claimed.jobId !== jobId) return;
    const events = envelope(deps, [releaseKey(jobId, 'payment_rejected', now(deps))], jobId);
    await deps.log.append(claimStream, expected, events);
  } catch (cause) {
    deps.logger.warn('a key of a rejected payment was not released yet', { cause });
  }
}

function paymentFacts({ reserved, settled }: Extract<BoundPayment, { status: 'settled' }>): PaymentFacts {
  const { scheme, network, asset, amount, payTo, payer, payloadHash } = reserved;
  return { scheme, network, asset, amount, payTo, payer, transaction: settled.transaction, payloadHash };
}
