// What the paid execution does with a payment: verify, reserve, release, settle. Settling is the one step that moves
// money: a payment that is reserved, and whose idempotency key is held, is settled once. Unless the facilitator reports
// success, the chain decides: it is polled within the call. A settlement fact is never dropped.
import type { PaymentFacts } from '#src/domain/event-fields.ts';
import type { PaymentSettled } from '#src/domain/events/payment.ts';
import { type EventOf, event } from '#src/domain/events.ts';
import { longestRunMs } from '#src/domain/job/retry.ts';
import { LIMITS } from '#src/domain/limits.ts';
import {
  type BoundPayment,
  concludeSettlement,
  type Inconclusive,
  isBound,
  isReturned,
  type Payment,
  paymentSettled,
  reconcile,
  type SettleEnd,
  settlementUnknown,
  surelyOverAt,
} from '#src/domain/payment/state.ts';
import { ALLOWED, Fault, isRefused, type Refused, refused } from '#src/domain/refusal.ts';
import { iso, isoNow } from '#src/lib/iso.ts';
import { underSignals } from '#src/lib/time.ts';
import type { AbortSignalLike } from '#src/ports/event-log.ts';
import type { Payments, PresentedPayment } from '#src/ports/payments.ts';
import type { Quota } from '#src/ports/quota.ts';
import {
  append,
  type JournalDeps,
  load,
  loadSurely,
  PAYMENT,
  tryAppend,
  type View,
} from '#src/usecases/process/stream.ts';
import type { StreamWatch } from '#src/usecases/process/watch.ts';
import { checkWalletFailures } from './admission.ts';
import { demandUnused, notVerified, recordEarlierUse } from './earlier-use.ts';
import { accountOf, type Call, isContract, unprovenPayer } from './execution-call.ts';
import { findKnown, inProgress, type LookUpDeps } from './idempotency.ts';
import type { UnconfirmedPayments } from './process-limits.ts';
import type { VerifyLimit } from './verify-limit.ts';

export type PaymentDeps = JournalDeps &
  LookUpDeps & {
    readonly payments: Payments;
    readonly owner: string;
    /** A lock proves that no other process is running: what another owner began is not under way any more. */
    readonly exclusive: boolean;
    /** Payment streams found in the middle of another's settlement. */
    readonly watch: StreamWatch;
    readonly unconfirmed: UnconfirmedPayments;
    readonly verifies: VerifyLimit;
    readonly quota: Quota;
    /** The longest that a call polls the chain after a settle call without a conclusive answer. */
    readonly confirmWaitMs: number;
    /** Aborts when the process is asked to stop: the chain is not polled, and no turn to be verified awaited, any more. */
    readonly stopping?: AbortSignalLike;
  };

/** `verified` false: the payment is known by now, so that its stream is the answer. */
export async function verifyPayment(
  deps: PaymentDeps,
  call: Call,
): Promise<{ readonly verified: boolean } | Refused> {
  if (call.presented === null) return { verified: true };
  const failures = isContract(call) ? await checkWalletFailures(deps.quota, call) : ALLOWED;
  if (isRefused(failures)) return failures;
  const waitMs = Math.min(LIMITS.verifyWaitMs.max, call.deadline.left());
  const caller = { client: call.client, payer: unprovenPayer(call) };
  const place = await deps.verifies.enter(caller, waitMs, deps.stopping);
  if (isRefused(place)) return place;
  const answer = await deps.payments.verify(call.presented).finally(place);
  if (answer.outcome === 'valid')
    return call.run === undefined ? { verified: true } : demandUnused(deps, call);
  if (answer.outcome === 'unavailable') throw notVerified();
  // A later copy fails because the first one has settled: then its stream contains it, and this is no 402.
  const known = await findKnown(deps, call.lookup);
  if (known.kind !== 'new' && (!isContract(call) || known.by === 'payment')) return { verified: false };
  if (known.kind === 'new' && (await recordEarlierUse(deps, known.streams.payment)) === 'paid')
    return { verified: false };
  const { reason } = answer;
  return refused('payment_required', 'The payment is not valid.', { details: { reason } });
}

/** Appends PaymentReserved. Returns null if there is no payment (demo mode). */
export async function reservePayment(
  deps: PaymentDeps,
  { presented, lookup, deadline }: Call,
  view: View<Payment> | null,
  jobId: string,
): Promise<View<Payment> | null> {
  if (presented === null || view === null) return null;
  const { scheme, network, asset, amount, payTo, payer, nonce, validBefore, payloadHash, x402Version } =
    presented;
  const reserved = event('PaymentReserved', {
    jobId,
    fingerprint: lookup.fingerprint,
    scheme,
    network,
    asset,
    amount,
    payTo,
    payer,
    nonce,
    validBefore,
    payloadHash,
    x402Version,
    owner: deps.owner,
    reservedAt: isoNow(deps),
  });
  return deadline.forAppend(append(deps, PAYMENT, view, [reserved]));
}

// ── settle ──────────────────────────────────────────────────────────────────────────────────────────────

/** The job that a call is about to pay for and start. */
export type Plan = {
  readonly jobId: string;
  readonly paymentStream: string | null;
  /** As last read or written by this call; null: no payment, or it has to be read. */
  readonly payment: View<Payment> | null;
  /** null: there is no payment, or it is the key holder's, whose header this call does not have: it is only looked up. */
  readonly presented: PresentedPayment | null;
  /** This call made the reservation, so that its settle call is the first. */
  readonly first: boolean;
};

type Settling = { readonly plan: Plan; readonly paymentStream: string; readonly call: Call };

export type Settled =
  /** The money is in: the job may start. */
  | { readonly kind: 'settled'; readonly payment: PaymentFacts }
  /** Another call has this payment now, or the key is free again: the streams have to be read again. */
  | { readonly kind: 'look_up' };

/** A settlement younger than this, by our own watch, may still be under way. */
const SETTLEMENT_WATCH_MS = 45_000;

const LOOK_UP = { kind: 'look_up' } as const;

/** Throws `WrongExpectedVersion` if another call acted first. */
export async function settlePayment(deps: PaymentDeps, it: Settling): Promise<Settled | Refused> {
  const { jobId, presented } = it.plan;
  const view = it.plan.payment ?? (await load(deps, PAYMENT, it.paymentStream));
  const payment = view.state;
  if (!isOf(payment, jobId)) return LOOK_UP;
  if (payment.status === 'settled') return { kind: 'settled', payment: paymentFacts(payment) };
  // A call that was frozen after its reservation may find that another took the settlement over.
  const first = it.plan.first && payment.status === 'reserved';
  let claimed = view;
  if (!first || presented === null) {
    if (payment.status !== 'missing' && mayBeUnderWay(deps, view, payment))
      return presented === null ? holderSettling() : inProgress(null);
    const finding = await lookUp(deps, payment);
    const found = reconcile(finding, payment, isoNow(deps));
    if (found !== null) return record(deps, it, view, () => found);
    if (presented === null) return holderUnconfirmed(payment, deps.clock.now());
    // Settled once by the facilitator's answer: it is not settled again.
    if (payment.status === 'missing') throw unconfirmed();
    const retried = event('SettlementRetried', { jobId, owner: deps.owner, retriedAt: isoNow(deps) });
    claimed = await it.call.deadline.forAppend(append(deps, PAYMENT, view, [retried]));
  }
  const answer = await deps.payments.settle(presented);
  if (answer.outcome === 'settled') {
    const settled = paymentSettled(payment, answer.transaction, 'facilitator', isoNow(deps));
    return record(deps, it, claimed, () => settled);
  }
  return confirm(deps, { ...it, claimed, payment, first }, answer);
}

type Unsettled = Exclude<BoundPayment, { status: 'settled' | 'missing' }>;

const lookUp = (
  { payments }: PaymentDeps,
  payment: Exclude<BoundPayment, { status: 'settled' }>,
  signal?: AbortSignalLike,
) => {
  const { transaction } = payment.status === 'missing' ? payment.settled : payment;
  return payments.lookUp(payment.reserved, { transaction, ...(signal && { signal }) });
};

const POLL_MS = 1000;
/** For the appends and the last look-up, which may take 8 s, beside the attempts. */
const MARGIN_MS = 10_000;

/** How long a call may poll the chain, so that its attempts still end before the response deadline. */
function pollTimeMs({ confirmWaitMs }: PaymentDeps, { deadline, read }: Call): number {
  const { retry, timeoutMs } = read.request;
  return Math.min(confirmWaitMs, deadline.left() - longestRunMs(retry.attempts, timeoutMs) - MARGIN_MS);
}

/**
 * Polls the chain for what became of a settle call without a conclusive answer; throws `payment_unconfirmed` if it cannot
 * be found out in time. The answer is recorded before the first pause, so that a crash does not lose its transaction hash.
 * `first`: it answers the payment's first settle call.
 */
async function confirm(
  deps: PaymentDeps,
  it: Settling & { readonly claimed: View<Payment>; readonly payment: Unsettled; readonly first: boolean },
  answer: Inconclusive,
): Promise<Settled | Refused> {
  const { clock } = deps;
  const { deadline } = it.call;
  const until = clock.monotonic() + pollTimeMs(deps, it.call);
  const transaction = (answer.outcome === 'unknown' ? answer.transaction : null) ?? it.payment.transaction;
  const payment = { ...it.payment, transaction };
  let view = it.claimed;
  let first = it.first;
  let isNoted = false;
  const polled = await underSignals([deadline.signal, deps.stopping], async (signal) => {
    for (;;) {
      const finding = await lookUp(deps, payment, signal);
      const recorded = await record(deps, it, view, (isUndisturbed: boolean) => {
        const at = isoNow(deps);
        first &&= isUndisturbed;
        const end = concludeSettlement(answer, finding, payment, { first, at });
        return end ?? (isNoted ? null : settlementUnknown(payment, answer, at));
      });
      if (isRefused(recorded) || recorded.kind !== 'open') return recorded;
      view = recorded.view;
      isNoted = true;
      if (clock.monotonic() + POLL_MS > until) return null;
      await clock.sleep(POLL_MS, signal);
      if (signal.aborted) return null;
    }
  });
  if (polled !== null) return polled;
  deps.unconfirmed.add(accountOf(it.call), it.paymentStream);
  throw unconfirmed();
}

const isOf = (payment: Payment, jobId: string): payment is BoundPayment =>
  isBound(payment) && payment.reserved.jobId === jobId;

/** Some process may be waiting for the answer of a settle call right now. */
function mayBeUnderWay(deps: PaymentDeps, view: View<Payment>, payment: Unsettled): boolean {
  if (payment.status === 'unknown') return false;
  if (deps.exclusive && payment.owner !== deps.owner) return false;
  return deps.watch.unchangedFor(view) < SETTLEMENT_WATCH_MS;
}

// ── what the first call's payment means for a repeat that brings another one ────────────────────────────

const holderRefused = (
  paymentState: 'reserved' | 'unconfirmed',
  message: string,
  retryAfterSeconds: number,
) => refused('idempotency_in_progress', message, { retryAfterSeconds, details: { paymentState } });

const holderSettling = () =>
  holderRefused(
    'reserved',
    'The payment of the first call with this idempotencyKey is being settled. Nothing was charged for this call.',
    2,
  );

function holderUnconfirmed(payment: BoundPayment, nowMs: number): Refused {
  const overMs = surelyOverAt(payment.reserved) * 1000;
  const message = `The payment of the first call with this idempotencyKey is unconfirmed, and nothing was charged for this call: repeat with the payment header of the first call, or with any payment after ${iso(overMs)}.`;
  return holderRefused('unconfirmed', message, Math.max(5, Math.ceil((overMs - nowMs) / 1000)));
}

// ── what is recorded ────────────────────────────────────────────────────────────────────────────────────

/** The payment's end is still unknown. */
type Open = { readonly kind: 'open'; readonly view: View<Payment> };

/**
 * Appends the fact at the revision in hand (null: nothing to append). On a conflict the stream is read again and the fact
 * appended unless Settled is stored. If another call wrote meanwhile, ours was not the only one (`isUndisturbed` false), and
 * a terminal error no longer counts. If the reservation has ended or is another job's by then, only "the money is in" is
 * still a fact, and the payment's owner continues with it.
 */
async function record(
  deps: PaymentDeps,
  it: Settling,
  inHand: View<Payment>,
  factOf: () => SettleEnd,
): Promise<Settled | Refused>;
async function record(
  deps: PaymentDeps,
  it: Settling,
  inHand: View<Payment>,
  factOf: (isUndisturbed: boolean) => SettleEnd | EventOf<'SettlementUnknown'> | null,
): Promise<Settled | Refused | Open>;
async function record(
  deps: PaymentDeps,
  it: Settling,
  inHand: View<Payment>,
  factOf: (isUndisturbed: boolean) => SettleEnd | EventOf<'SettlementUnknown'> | null,
): Promise<Settled | Refused | Open> {
  const { paymentStream } = it;
  const { jobId } = it.plan;
  for (let view = inHand; ; view = await loadSurely(deps, PAYMENT, paymentStream)) {
    const payment = view.state;
    const ours = isOf(payment, jobId);
    if (payment.status === 'settled') {
      deps.unconfirmed.drop(paymentStream);
      return ours ? { kind: 'settled', payment: paymentFacts(payment) } : LOOK_UP;
    }
    if (isReturned(payment) || payment.status === 'absent') return LOOK_UP;
    const found = factOf(view === inHand);
    // Settled meanwhile, and then found missing: it may have bought its job, so that only its transfer is still a fact.
    const isFoundMissing = payment.status === 'missing' && view !== inHand;
    if ((!ours || isFoundMissing) && found?.type !== 'PaymentSettled') return LOOK_UP;
    if (found === null) return { kind: 'open', view };
    // The money is the reservation's, whichever job's call moved it.
    const fact =
      found.type === 'PaymentSettled'
        ? { ...found, data: { ...found.data, jobId: payment.reserved.jobId } }
        : found;
    const appended = await tryAppend(deps, PAYMENT, view, [fact]);
    if (appended === null) continue;
    return fact.type === 'SettlementUnknown'
      ? { kind: 'open', view: appended }
      : conclude(deps, it, ours ? payment : null, fact);
  }
}

/** `payment` null: it is not this job's any more. */
function conclude(
  deps: PaymentDeps,
  it: Settling,
  payment: BoundPayment | null,
  fact: SettleEnd,
): Settled | Refused {
  deps.unconfirmed.drop(it.paymentStream);
  if (fact.type === 'PaymentRejected') {
    // The key is released by the next call that claims it.
    if (it.plan.presented === null) return LOOK_UP;
    const { reason } = fact.data;
    return refused('payment_required', 'The payment was not accepted.', { details: { reason } });
  }
  if (payment === null) return LOOK_UP;
  const { reserved } = payment;
  return { kind: 'settled', payment: paymentFacts({ reserved, settled: fact.data }) };
}

export const unconfirmed = (cause?: unknown) =>
  new Fault('payment_unconfirmed', 'The payment is not confirmed yet: repeat with the same payment header.', {
    cause,
    retryAfterSeconds: 5,
  });

function paymentFacts({
  reserved,
  settled,
}: Pick<BoundPayment, 'reserved'> & { readonly settled: Pick<PaymentSettled, 'transaction'> }): PaymentFacts {
  const { scheme, network, asset, amount, payTo, payer, payloadHash } = reserved;
  return { scheme, network, asset, amount, payTo, payer, transaction: settled.transaction, payloadHash };
}
