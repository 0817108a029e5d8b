// The one step that moves money, for a payment that is reserved and whose key is held: settle once, find out where that
// is not known, and write down what was learnt. A settlement fact is never dropped.
import type { PaymentFacts } from '#src/domain/event-fields.ts';
import { releaseKey } from '#src/domain/payment/claim.ts';
import {
  type BoundPayment,
  isBound,
  type Payment,
  reconcile,
  recordSettleAnswer,
  recordSpentNonce,
  type SettleFact,
} from '#src/domain/payment/state.ts';
import { Fault, type Refused, refused } from '#src/domain/refusal.ts';
import { EventLogUnavailable, WrongExpectedVersion } from '#src/ports/event-log.ts';
import type { Payments, PresentedPayment } from '#src/ports/payments.ts';
import {
  appendUntilKnown,
  envelope,
  type JournalDeps,
  loadClaim,
  loadPayment,
  type View,
} from '#src/usecases/event-streams.ts';
import { inProgress } from './idempotency.ts';
import type { StreamWatch } from './lease-observer.ts';
import type { OpenUnknowns } from './unconfirmed-payments.ts';

export type SettleDeps = JournalDeps & {
  readonly payments: Payments;
  readonly owner: string;
  /** A lock proves that no other process lives: what another owner began is not under way any more. */
  readonly exclusive: boolean;
  /** Payment streams met in the middle of another's settlement. */
  readonly watch: StreamWatch;
  readonly unknowns: OpenUnknowns;
};

export type Settling = {
  readonly jobId: string;
  readonly claimStream: string | null;
  readonly presented: PresentedPayment;
  readonly paymentStream: string;
  /** Whose open payments this one counts among. */
  readonly account: string;
  /** Waits for an append as long as the caller does; rejects where the call must go no further. */
  readonly patiently: <T>(append: Promise<T>) => Promise<T>;
};

export type Collected =
  /** The key is held and the money is in (or none is asked): the job may start. */
  | { readonly kind: 'collected'; readonly payment: PaymentFacts | null }
  /** Another moved a stream first: look again. */
  | { readonly kind: 'again' }
  | { readonly kind: 'refused'; readonly refusal: Refused };

/** A settlement that is younger than this (by our own watch) may still be under way. */
const SETTLEMENT_WATCH_MS = 45_000;

const now = (deps: SettleDeps) => new Date(deps.clock.now()).toISOString();

/** `fresh`: this call made the reservation. Throws `WrongExpectedVersion` where another acted first. */
export async function settlePayment(deps: SettleDeps, it: Settling, fresh: boolean): Promise<Collected> {
  const { jobId, presented } = it;
  const view = await loadPayment(deps.log, it.paymentStream);
  const payment = view.state;
  if (!isOf(payment, jobId)) return { kind: 'again' };
  if (payment.status === 'settled') return { kind: 'collected', payment: paymentFacts(payment) };
  // Whoever was frozen after its reservation may find that another took the settlement over.
  const first = fresh && payment.status === 'reserved';
  if (!first) {
    if (mayBeUnderWay(deps, view, payment)) return { kind: 'refused', refusal: inProgress(jobId) };
    const found = reconcile(await deps.payments.lookUp(presented), payment, now(deps));
    if (found !== null) return settleFact(deps, it, () => found);
    const data = { v: 1 as const, jobId, owner: deps.owner, retriedAt: now(deps) };
    const events = envelope(deps, [{ type: 'SettlementRetried', data }], jobId);
    await it.patiently(appendUntilKnown(deps, view.stream, view.expected, events));
  }
  const answer = await deps.payments.settle(presented);
  const finding = answer.outcome === 'nonce_used' ? await deps.payments.lookUp(presented) : null;
  const at = now(deps);
  return settleFact(deps, it, (onlyCall) => {
    const call = { first: first && onlyCall, jobId, at };
    return finding === null ? recordSettleAnswer(answer, call) : recordSpentNonce(finding, payment, call);
  });
}

const isOf = (payment: Payment, jobId: string): payment is BoundPayment =>
  isBound(payment) && payment.reserved.jobId === jobId;

/** Somebody may be waiting for the answer of a settle call right now. */
function mayBeUnderWay(
  deps: SettleDeps,
  { stream, expected }: View<Payment>,
  payment: Exclude<BoundPayment, { status: 'settled' }>,
): boolean {
  if (payment.status === 'unknown') return false;
  if (deps.exclusive && payment.owner !== deps.owner) return false;
  return deps.watch.unchangedFor(stream, String(expected)) < SETTLEMENT_WATCH_MS;
}

/**
 * On a conflict the stream is read again and the fact appended unless Settled stands. Where another retried meanwhile,
 * ours was not the only call, and a terminal "no" no longer counts. Where the reservation has ended meanwhile or is
 * another job's, only "the money is in" is a fact still, and whoever owns the payment by then goes on with it.
 */
async function settleFact(
  deps: SettleDeps,
  it: Settling,
  factOf: (onlyCall: boolean) => SettleFact,
): Promise<Collected> {
  const { jobId, paymentStream } = it;
  for (;;) {
    const view = await readSurely(deps, paymentStream);
    const payment = view.state;
    const ours = isOf(payment, jobId);
    if (payment.status === 'settled') {
      deps.unknowns.drop(paymentStream);
      return ours ? { kind: 'collected', payment: paymentFacts(payment) } : { kind: 'again' };
    }
    const fact = factOf(ours && payment.status === 'reserved');
    if (!ours && fact.type !== 'PaymentSettled') return { kind: 'again' };
    try {
      await appendUntilKnown(deps, paymentStream, view.expected, envelope(deps, [fact], jobId));
    } catch (error) {
      if (error instanceof WrongExpectedVersion) continue;
      throw error;
    }
    return concluded(deps, it, ours ? payment : null, fact);
  }
}

/** The log may be away just when the money has moved: the fact in hand waits for it. */
async function readSurely(deps: SettleDeps, stream: string): Promise<View<Payment>> {
  for (;;) {
    try {
      return await loadPayment(deps.log, stream);
    } catch (error) {
      if (!(error instanceof EventLogUnavailable) || deps.ending?.aborted) throw error;
      await deps.clock.sleep(500, deps.ending);
    }
  }
}

/** `payment` null: it is not this job's any more. */
async function concluded(
  deps: SettleDeps,
  it: Settling,
  payment: BoundPayment | null,
  fact: SettleFact,
): Promise<Collected> {
  if (fact.type === 'SettlementUnknown') {
    deps.unknowns.add(it.account, it.paymentStream);
    const message = 'The payment is not confirmed yet: repeat with the same payment header.';
    throw new Fault('payment_unconfirmed', message, { retryAfterSeconds: 5 });
  }
  deps.unknowns.drop(it.paymentStream);
  if (fact.type === 'PaymentRejected') {
    await freeKey(deps, it);
    const { reason } = fact.data;
    const refusal = refused('payment_required', 'The payment was not accepted.', { details: { reason } });
    return { kind: 'refused', refusal };
  }
  if (payment === null) return { kind: 'again' };
  const { reserved } = payment;
  return { kind: 'collected', payment: paymentFacts({ status: 'settled', reserved, settled: fact.data }) };
}

/** Best effort: whoever meets the claim later reads the same from the payment's stream. */
async function freeKey(deps: SettleDeps, { claimStream, jobId }: Settling): Promise<void> {
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
