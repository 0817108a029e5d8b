// The settlement of a payment that is reserved, and whose idempotency key is held: the one step that moves money.
//
//   claim ─▶ call ─▶ conclude ─▶ settled
//                    ▲     │
//                    └ ask ┘   unless the facilitator reports success, the chain decides: it is polled within the call
//
// A settlement fact is never dropped: if another call writes to the payment first, what follows from the evidence is judged
// again on the stream as it is then.
import type { PaymentFacts } from '#src/domain/event-fields.ts';
import type { PaymentSettled } from '#src/domain/events/payment.ts';
import { event } from '#src/domain/events.ts';
import { longestRunMs } from '#src/domain/job/retry.ts';
import { type Evidence, isOf, nextOfSettlement } from '#src/domain/payment/settlement.ts';
import { type BoundPayment, type Payment, type SettleEnd, surelyOverAt } from '#src/domain/payment/state.ts';
import { Fault, isRefused, type Refused, refused } from '#src/domain/refusal.ts';
import { iso, isoNow } from '#src/lib/iso.ts';
import { underSignals } from '#src/lib/time.ts';
import type { AbortSignalLike } from '#src/ports/event-log.ts';
import type { PresentedPayment } from '#src/ports/payments.ts';
import {
  append,
  appendTogetherUntilKnown,
  envelope,
  load,
  loadSurely,
  orNull,
  PAYMENT,
  tryAppend,
  type View,
} from '#src/usecases/process/stream.ts';
import { accountOf, type Call } from './execution-call.ts';
import { inProgress } from './idempotency.ts';
import { countUncharged, type PaymentDeps, withVerifyPlace } from './payment-steps.ts';
import type { Announcement } from './run-job.ts';

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

type Settling = {
  readonly plan: Plan;
  readonly paymentStream: string;
  readonly call: Call;
  /** The start of the job, where it may be stored together with the settlement; null: the job starts later. */
  readonly announce: ((payment: PaymentFacts) => Announcement) | null;
};

export type Settled =
  /** The money is in: the job may start. `announced`: its JobStarted is stored with the settlement; null: not yet. */
  | { readonly kind: 'settled'; readonly payment: PaymentFacts; readonly announced: Announcement | null }
  /** Another call has recorded what became of it, or has it now, or the key is free again: the streams have to be read again. */
  | { readonly kind: 'look_up' };

type Open = { readonly kind: 'open' } & Pick<Evidence, 'isOvertaken'> & { readonly view: View<Payment> };

const LOOK_UP = { kind: 'look_up' } as const;

/** Throws `WrongExpectedVersion` if another call has claimed the settle call first. */
export async function settlePayment(deps: PaymentDeps, settling: Settling): Promise<Settled | Refused> {
  const { plan, paymentStream } = settling;
  const view = plan.payment ?? (await load(deps, PAYMENT, paymentStream));
  const payment = view.state;
  if (!isOf(payment, plan.jobId)) return LOOK_UP;
  // Settled by others after this call claimed its key: they may have refused the payment before, which ends the claim.
  if (payment.status === 'settled') return plan.payment === null ? LOOK_UP : settledBy(payment);
  const { presented } = plan;
  // A call that was frozen after its reservation may find that another took the settlement over.
  const first = plan.first && payment.status === 'reserved';
  if (first && presented !== null)
    return callAndConclude(deps, settling, { view, payment, presented, first });
  const claimed = await claimRetry(deps, settling, { ...view, state: payment });
  if (isRefused(claimed) || claimed.kind !== 'open') return claimed;
  if (presented === null) return holderUnconfirmed(payment, deps.clock.now());
  return callAndConclude(deps, settling, { view: claimed.view, payment, presented, first: false });
}

type Unsettled = Exclude<BoundPayment, { status: 'settled' }>;

/**
 * For a payment that may have been settled before: the chain is asked, and only if it proves nothing is another settle call
 * claimed. The holder's payment is only looked up.
 */
async function claimRetry(
  deps: PaymentDeps,
  settling: Settling,
  view: View<Unsettled>,
): Promise<Settled | Refused | Open> {
  const { state: payment } = view;
  const { presented, jobId } = settling.plan;
  if (mayBeUnderWay(deps, view)) return presented === null ? holderSettling() : inProgress(null);
  // Who repeats pays nothing for the question; whose payment it is was proven when it was reserved.
  const { call } = settling;
  const finding = await withVerifyPlace(deps, call, () => lookUp(deps, payment), call.payer);
  if (isRefused(finding)) return finding;
  const evidence = { answer: null, finding, first: false, isOvertaken: false, isNoted: true };
  const known = await conclude(deps, settling, view, evidence);
  if (isRefused(known) || known.kind !== 'open' || presented === null) return known;
  // Settled once by the facilitator's answer: it is not settled again.
  if (payment.status === 'missing') throw unconfirmed();
  const retried = event('SettlementRetried', { jobId, owner: deps.owner, retriedAt: isoNow(deps) });
  const claimed = await settling.call.deadline.forAppend(append(deps, PAYMENT, view, [retried]));
  return { ...known, view: claimed };
}

type Claimed = {
  readonly view: View<Payment>;
  readonly payment: Unsettled;
  readonly presented: PresentedPayment;
  readonly first: boolean;
};

/**
 * Makes the settle call. Without a conclusive answer the chain is polled; throws `payment_unconfirmed` if it cannot be found
 * out in time. The answer is recorded before the first pause, so that a crash does not lose its transaction hash.
 */
async function callAndConclude(
  deps: PaymentDeps,
  settling: Settling,
  { view, payment, presented, first }: Claimed,
): Promise<Settled | Refused> {
  const answer = await deps.payments.settle(presented);
  const { deadline } = settling.call;
  let evidence: Omit<Evidence, 'at'> = { answer, finding: null, first, isOvertaken: false, isNoted: false };
  if (answer.outcome === 'settled')
    return (
      (await settleAndAnnounce(deps, settling, view, evidence)) ??
      ended(await conclude(deps, settling, view, evidence))
    );
  const until = deps.clock.monotonic() + pollTimeMs(deps, settling.call);
  const named = answer.outcome === 'unknown' ? answer.transaction : null;
  const transaction = named ?? transactionOf(payment);
  let inHand = view;
  const polled = await underSignals([deadline.signal, deps.stopping], async (signal) => {
    for (;;) {
      const finding = await lookUp(deps, payment, { transaction, signal });
      const concluded = await conclude(deps, settling, inHand, { ...evidence, finding });
      if (isRefused(concluded) || concluded.kind !== 'open') return concluded;
      inHand = concluded.view;
      evidence = { ...evidence, isNoted: true, isOvertaken: concluded.isOvertaken };
      if (deps.clock.monotonic() + POLL_MS > until) return null;
      await deps.clock.sleep(POLL_MS, signal);
      if (signal.aborted) return null;
    }
  });
  if (polled !== null) return polled;
  deps.unconfirmed.add(accountOf(settling.call), settling.paymentStream);
  throw unconfirmed();
}

/**
 * Stores the settlement and the start of its job in one append. null: the log cannot, or another call has written to the
 * payment or the job first. Then nothing is stored.
 */
async function settleAndAnnounce(
  deps: PaymentDeps,
  { plan, paymentStream, call, announce }: Settling,
  { state, ...place }: View<Payment>,
  known: Omit<Evidence, 'at'>,
): Promise<Settled | null> {
  const { appendTogether } = deps.log;
  const { jobId } = plan;
  const step = nextOfSettlement(state, jobId, { ...known, at: isoNow(deps) });
  if (appendTogether === null || announce === null || step.kind !== 'append' || !isOf(state, jobId))
    return null;
  const { fact } = step;
  if (fact.type !== 'PaymentSettled') return null;
  const settled = settledBy({ reserved: state.reserved, settled: fact.data });
  const announced = announce(settled.payment);
  const settlement = { ...place, events: envelope(deps, [fact], jobId) };
  const acknowledged = call.deadline.limitAppend();
  const together = appendTogetherUntilKnown(deps, appendTogether, [settlement, announced.append]);
  if ((await orNull(together.finally(acknowledged))) === null) return null;
  noteKnown(deps, paymentStream);
  return { ...settled, announced };
}

/** The facilitator's success leaves nothing open. */
function ended(concluded: Settled | Refused | Open): Settled | Refused {
  if (isRefused(concluded) || concluded.kind !== 'open') return concluded;
  throw new Error('a settlement that has succeeded is open');
}

/**
 * Appends what follows from the evidence, and returns what that means for the call. If another call writes first, what
 * follows is judged again on what it wrote.
 */
async function conclude(
  deps: PaymentDeps,
  settling: Settling,
  inHand: View<Payment>,
  known: Omit<Evidence, 'at'>,
): Promise<Settled | Refused | Open> {
  const { paymentStream, plan } = settling;
  let { isOvertaken } = known;
  for (let view = inHand; ; view = await loadSurely(deps, PAYMENT, paymentStream)) {
    const evidence = { ...known, isOvertaken, at: isoNow(deps) };
    const step = nextOfSettlement(view.state, plan.jobId, evidence);
    if (step.kind === 'open') return { kind: 'open', view, isOvertaken };
    if (step.kind === 'elsewhere') {
      if (view.state.status === 'settled') noteKnown(deps, paymentStream);
      return LOOK_UP;
    }
    const appended = await tryAppend(deps, PAYMENT, view, [step.fact]);
    if (appended === null) isOvertaken = true;
    else if (step.fact.type === 'SettlementUnknown') return { kind: 'open', view: appended, isOvertaken };
    else return outcomeOf(deps, settling, view.state, step.fact);
  }
}

function noteKnown({ unconfirmed, uncharged }: PaymentDeps, paymentStream: string): void {
  unconfirmed.drop(paymentStream);
  uncharged.charged(paymentStream);
}

/** `before`: the payment that the fact was appended to. */
async function outcomeOf(
  deps: PaymentDeps,
  { call, plan, paymentStream }: Settling,
  before: Payment,
  fact: SettleEnd,
): Promise<Settled | Refused> {
  noteKnown(deps, paymentStream);
  if (fact.type === 'PaymentRejected') {
    // The key is released by the next call that claims it.
    if (plan.presented === null) return LOOK_UP;
    await countUncharged(deps, call);
    const { reason } = fact.data;
    return refused('payment_required', 'The payment was not accepted.', { details: { reason } });
  }
  if (!isOf(before, plan.jobId)) return LOOK_UP;
  return settledBy({ reserved: before.reserved, settled: fact.data });
}

// ── the chain ───────────────────────────────────────────────────────────────────────────────────────────

const POLL_MS = 1000;
/** For the appends and the last look-up, which may take 8 s, beside the attempts. */
const MARGIN_MS = 10_000;

/** How long a call may poll the chain, so that its attempts still end before the response deadline. */
function pollTimeMs({ confirmWaitMs }: PaymentDeps, { deadline, read }: Call): number {
  const { retry, timeoutMs } = read.request;
  return Math.min(confirmWaitMs, deadline.left() - longestRunMs(retry.attempts, timeoutMs) - MARGIN_MS);
}

/** The hash that is recorded; null: none is. */
const transactionOf = (payment: Unsettled): string | null =>
  payment.status === 'missing' ? payment.settled.transaction : payment.transaction;

const lookUp = (
  { payments }: PaymentDeps,
  payment: Unsettled,
  {
    transaction = transactionOf(payment),
    signal,
  }: { transaction?: string | null; signal?: AbortSignalLike } = {},
) => payments.lookUp(payment.reserved, { transaction, ...(signal && { signal }) });

/** A settlement younger than this, by our own watch, may still be under way. */
const SETTLEMENT_WATCH_MS = 45_000;

/** Some process may be waiting for the answer of a settle call right now. */
function mayBeUnderWay(deps: PaymentDeps, view: View<Unsettled>): boolean {
  const { state: payment } = view;
  if (payment.status === 'unknown' || payment.status === 'missing') return false;
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

export const unconfirmed = (cause?: unknown) =>
  new Fault('payment_unconfirmed', 'The payment is not confirmed yet: repeat with the same payment header.', {
    cause,
    retryAfterSeconds: 5,
  });

function settledBy({
  reserved,
  settled,
}: Pick<BoundPayment, 'reserved'> & { readonly settled: Pick<PaymentSettled, 'transaction'> }) {
  const { scheme, network, asset, amount, payTo, payer, payloadHash } = reserved;
  const { transaction } = settled;
  const payment: PaymentFacts = { scheme, network, asset, amount, payTo, payer, transaction, payloadHash };
  return { kind: 'settled', payment, announced: null } as const;
}
