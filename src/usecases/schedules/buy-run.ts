// Buys runs of schedules: a payment is verified and bound to one run, and nothing is settled before that run is due.
import { toHex } from '#src/domain/encoding.ts';
import { type EventOf, event, STREAM } from '#src/domain/events.ts';
import { makeId } from '#src/domain/ids.ts';
import type { Payment } from '#src/domain/payment/state.ts';
import { ALLOWED, type Allowed, isRefused, type Refused, refused } from '#src/domain/refusal.ts';
import {
  defineSchedule,
  type Funding,
  firstRun,
  fundRun as fund,
  over,
} from '#src/domain/schedule/commands.ts';
import { RUN_TIMES, SCHEDULE_LIMITS } from '#src/domain/schedule/limits.ts';
import type { ScheduleRequest } from '#src/domain/schedule/plan.ts';
import { type PaymentHeader, readSealedRequest } from '#src/domain/schedule/sealed.ts';
import type { DefinedSchedule, PlannedRun, Schedule } from '#src/domain/schedule/state.ts';
import { iso } from '#src/lib/iso.ts';
import { WrongExpectedVersion } from '#src/ports/event-log.ts';
import { orLogFault } from '#src/ports/outage.ts';
import type { PresentedPayment } from '#src/ports/payments.ts';
import {
  judgeRequest,
  type ReadRequest,
  readRequest,
  runFingerprint,
} from '#src/usecases/decisions/judge-request.ts';
import { takePaidSlot } from '#src/usecases/execution/admission.ts';
import { accountOf, type Call, callOf, unprovenPayer } from '#src/usecases/execution/execution-call.ts';
import { inProgress } from '#src/usecases/execution/idempotency.ts';
import { verifyPayment } from '#src/usecases/execution/payment-steps.ts';
import { eventIn } from '#src/usecases/process/read-events.ts';
import { append, load, PAYMENT, SCHEDULE, type View } from '#src/usecases/process/stream.ts';
import { answerInTime } from '#src/usecases/response-deadline.ts';
import { demandSigningKey } from '#src/usecases/signing-keys/active-keys.ts';
import { demandWholeRecord } from '#src/usecases/transparency/whole-record.ts';
import { hashOf, releasePayment, tokenOf } from './end-run.ts';
import {
  nextOf,
  noRun,
  notFound,
  type Quote,
  quoteOf,
  readPlan,
  type ScheduleDeps,
  timeOf,
} from './quote.ts';

export type Buyer = {
  /** null: calls are free. */
  readonly presented: PresentedPayment | null;
  readonly header: PaymentHeader | null;
  readonly payer: string;
  /** An opaque key of the client address. */
  readonly client: string;
};

export type Bought = {
  readonly schedule: DefinedSchedule;
  readonly run: PlannedRun;
  /** null: the schedule was defined before, or its first payment is used. */
  readonly cancelToken: string | null;
};

// ── purchases ───────────────────────────────────────────────────────────────────────────────────────────

/** Throws `Fault` for our own failures: nothing is settled, and the same payment can be presented again. */
export async function createSchedule(
  deps: ScheduleDeps,
  request: ScheduleRequest,
  buyer: Buyer,
): Promise<Bought | Refused> {
  const plan = readPlan(deps, request);
  if (isRefused(plan)) return plan;
  const ids = {
    scheduleId: makeId('sch', deps.entropy.bytes(16)),
    jobId: makeId('job', deps.entropy.bytes(16)),
  };
  return purchase(deps, buyer, plan.read, async (call) => {
    const known = await knownTicket(deps, call);
    if (known !== null && isRefused(known)) return known;
    if (known !== null && known.schedule.state.status !== 'absent') {
      const { state } = known.schedule;
      if (state.defined.fingerprint !== plan.defined.fingerprint || known.run.run !== 1) return reused();
      const isUnused = known.payment.state.status === 'deferred';
      const cancelToken = isUnused ? tokenOf(deps, state.defined.scheduleId) : null;
      return { schedule: state, run: known.run, cancelToken };
    }
    const run = known?.run ?? firstRun(plan.defined, timeOf(deps));
    if (run === null) return noRun();
    const { scheduleId, jobId } = known ?? ids;
    const fingerprint = runFingerprint(deps.keyedHash, plan.read.request, scheduleId);
    if (known !== null && known.payment.state.reserved.fingerprint !== fingerprint) return reused();
    const quote = quoteOf(deps.clock.now(), run, plan.defined);
    const order = { scheduleId, jobId, fingerprint, quote, endsAt: plan.defined.endsAt };
    const funding = await payFor(deps, call, { buyer, order, isBound: known !== null });
    if (isRefused(funding)) return funding;
    const text = JSON.stringify(plan.webhook);
    const untilMs = keptUntil(plan.defined.endsAt);
    const sealed = await deps.vault.put({ name: scheduleId, text, untilMs, seat: null });
    if (sealed === null) throw new Error('a key that is not counted is always stored');
    const cancelToken = tokenOf(deps, scheduleId);
    const facts = {
      ...plan.defined,
      scheduleId,
      mode: deps.payments.mode,
      cancelHash: hashOf(cancelToken),
      sealed,
    };
    const view = await load(deps, SCHEDULE, scheduleId);
    // A copy of this purchase has defined it meanwhile.
    if (view.state.status !== 'absent') throw new WrongExpectedVersion(view.stream, 'no_stream', null);
    const events = defineSchedule(facts, run, funding, timeOf(deps));
    const defined = await call.deadline.forAppend(append(deps, SCHEDULE, view, events));
    return boughtOf(defined.state, run, cancelToken);
  });
}

/** One more run: the first without a payment. */
export async function fundRun(
  deps: ScheduleDeps,
  scheduleId: string,
  buyer: Buyer,
): Promise<Bought | Refused> {
  const view = await orLogFault(load(deps, SCHEDULE, scheduleId), UNSETTLED);
  if (view.state.status === 'absent') return notFound();
  const text = await deps.vault.take(view.state.defined.sealed);
  if (text === null) return over(view.state.status === 'cancelled' ? 'cancelled' : 'complete');
  const read = readRequest(readSealedRequest(text), '/webhook');
  if (isRefused(read)) return read;
  const newJobId = makeId('job', deps.entropy.bytes(16));
  return purchase(deps, buyer, read, async (call) => {
    const before = await load(deps, SCHEDULE, scheduleId);
    const { state } = before;
    if (state.status === 'absent') return notFound();
    const known = await knownTicket(deps, call);
    if (known !== null && isRefused(known)) return known;
    if (known !== null && known.scheduleId !== scheduleId) return reused();
    const isRecorded = known !== null && state.tickets.some(({ jobId }) => jobId === known.jobId);
    if (known !== null && (isRecorded || known.payment.state.status !== 'deferred'))
      return { schedule: state, run: known.run, cancelToken: null };
    const next = nextOf(deps, state);
    if (isRefused(next)) return next;
    const { run, passed } = next;
    // Bound before a crash: by now another run may be the first without a payment.
    if (known !== null && known.run.run !== run.run) {
      await releasePayment(deps, known.payment.stream, known.jobId, 'run_taken');
      throw new WrongExpectedVersion(known.payment.stream, 'no_stream', null);
    }
    const order = {
      scheduleId,
      jobId: known?.jobId ?? newJobId,
      fingerprint: runFingerprint(deps.keyedHash, read.request, scheduleId),
      quote: quoteOf(deps.clock.now(), run, state.defined),
      endsAt: state.defined.endsAt,
    };
    const funding = await payFor(deps, call, { buyer, order, isBound: known !== null });
    if (isRefused(funding)) return funding;
    const events = [...passed, fund(state, run, funding, timeOf(deps))];
    const after = await call.deadline.forAppend(append(deps, SCHEDULE, before, events));
    return boughtOf(after.state, run, null);
  });
}

function boughtOf(schedule: Schedule, run: PlannedRun, cancelToken: string | null): Bought {
  if (schedule.status === 'absent') throw new Error('a schedule that was appended to is defined');
  return { schedule, run, cancelToken };
}

const DAY_MS = 86_400_000;
const MAX_TRIES = 10;
const UNSETTLED = 'nothing was settled. Repeat with the same payment header.';

/** Repeats `work` while others write first; answers within the response deadline. */
async function purchase(
  deps: ScheduleDeps,
  { presented, payer, client }: Buyer,
  read: ReadRequest,
  work: (call: Call) => Promise<Bought | Refused>,
): Promise<Bought | Refused> {
  const input = {
    request: { url: read.target.href },
    route: 'execute/webhook',
    decisionId: null,
    decisionHash: null,
    approval: ALLOWED,
    presented,
    payer,
    client,
    via: null,
  } as const;
  return answerInTime(deps, UNSETTLED, async (deadline) => {
    const call = callOf(deps, input, read, deadline);
    for (let tries = 0; tries < MAX_TRIES; tries++) {
      try {
        return await work(call);
      } catch (error) {
        if (!(error instanceof WrongExpectedVersion)) throw error;
      }
    }
    return inProgress(null);
  });
}

type KnownTicket = {
  readonly scheduleId: string;
  readonly jobId: string;
  readonly run: PlannedRun;
  readonly payment: View<Exclude<Payment, { status: 'absent' }>>;
  readonly schedule: View<Schedule>;
};

/** The run that this payment was bound to; null: it is new, or its last use has ended. */
async function knownTicket(deps: ScheduleDeps, call: Call): Promise<KnownTicket | null | Refused> {
  const { paymentStream, authorization, payloadHash } = call.lookup;
  if (paymentStream === null || authorization === null) return null;
  const payment = await load(deps, PAYMENT, paymentStream);
  const { state } = payment;
  if (state.status === 'absent' || state.status === 'rejected' || state.status === 'released') return null;
  const { reserved } = state;
  const isCopy =
    reserved.amount === authorization.amount &&
    reserved.payTo === authorization.payTo &&
    reserved.validBefore === authorization.validBefore &&
    (payloadHash === null || payloadHash === reserved.payloadHash);
  const deferred = await findDeferred(deps, paymentStream, reserved.jobId);
  if (!isCopy || deferred === null) return reused();
  const { scheduleId, jobId, run, dueAt } = deferred;
  const schedule = await load(deps, SCHEDULE, scheduleId);
  return { scheduleId, jobId, run: { run, dueAt }, payment: { ...payment, state }, schedule };
}

async function findDeferred(
  { log }: ScheduleDeps,
  stream: string,
  jobId: string,
): Promise<EventOf<'PaymentDeferred'>['data'] | null> {
  for (const recorded of (await log.readStream(stream)).reverse()) {
    const { type, data } = eventIn(recorded);
    if (type === 'PaymentDeferred' && data.jobId === jobId) return data;
  }
  return null;
}

const reused = () =>
  refused('payment_reused', 'This payment was made for another request: sign a new payment.');

type Order = {
  readonly scheduleId: string;
  readonly jobId: string;
  readonly fingerprint: string;
  readonly quote: Quote;
  /** Of the schedule: RFC 3339. */
  readonly endsAt: string;
};

/**
 * Binds the payment to the run, unless it is, and seals its header: the key is durable before the run is recorded as funded,
 * and is one of the few that its holder may have.
 */
async function payFor(
  deps: ScheduleDeps,
  call: Call,
  { buyer, order, isBound }: { readonly buyer: Buyer; readonly order: Order; readonly isBound: boolean },
): Promise<Funding | Refused> {
  const { presented, header, payer, client } = buyer;
  const { jobId } = order;
  const limit = presented === null ? SCHEDULE_LIMITS.ticketsPerClient : SCHEDULE_LIMITS.ticketsPerPayer;
  const holder = toHex(deps.keyedHash.mac('ticket-holder', presented === null ? `client ${client}` : payer));
  const tooMany = () =>
    refused('too_many_in_flight', `At most ${limit.max} runs that are not over: ${limit.meaning}`, {
      retryAfterSeconds: 60,
    });
  if (!isBound) {
    if ((await deps.vault.held(holder)) >= limit.max) return tooMany();
    const bound = await bindPayment(deps, call, order);
    if (isRefused(bound)) return bound;
  }
  const untilMs =
    presented === null
      ? keptUntil(order.endsAt)
      : Number(presented.validBefore) * 1000 + RUN_TIMES.endGraceMs;
  const text = JSON.stringify(header);
  const sealed = await deps.vault.put({ name: jobId, text, untilMs, seat: { holder, max: limit.max } });
  const paymentStream = presented === null ? null : STREAM.payment(presented.hash);
  if (sealed === null) {
    if (paymentStream !== null) await releasePayment(deps, paymentStream, jobId, 'too_many_in_flight');
    return tooMany();
  }
  if (presented === null) return { jobId, paymentStream, validBefore: null, holder, sealed: null };
  return { jobId, paymentStream, validBefore: Number(presented.validBefore), holder, sealed };
}

/** Until when the keys of a schedule are kept that have no earlier end: Unix ms. */
const keptUntil = (endsAt: string): number => Date.parse(endsAt) + DAY_MS;

/** Judges the target and the payment, and appends PaymentDeferred. Nothing is appended where calls are free. */
async function bindPayment(deps: ScheduleDeps, call: Call, order: Order): Promise<Allowed | Refused> {
  await demandWholeRecord(deps, 'nothing was sent, and no run is sold');
  demandSigningKey(deps);
  const { presented, payer } = call;
  const { quote, scheduleId, jobId, fingerprint } = order;
  const verdict = await judgeRequest(deps, call.read.target, payer);
  if (isRefused(verdict)) return verdict;
  const { paymentStream } = call.lookup;
  if (presented === null || paymentStream === null) return ALLOWED;
  const dueMs = Date.parse(quote.run.dueAt);
  const ticket = deps.payments.validateTicket(presented, {
    nowMs: deps.clock.now(),
    dueMs,
    untilMs: quote.untilMs,
  });
  if (isRefused(ticket)) return ticket;
  const slot = await takePaidSlot(deps, {
    caller: unprovenPayer(call),
    account: accountOf(call),
    paymentStream,
    isNew: true,
  });
  if (isRefused(slot)) return slot;
  try {
    const verified = ticket.verifiable ? await verifyPayment(deps, call) : { verified: true };
    if (isRefused(verified)) return verified;
    const view = await load(deps, PAYMENT, paymentStream);
    const { status } = view.state;
    if (!verified.verified || !['absent', 'rejected', 'released'].includes(status))
      throw new WrongExpectedVersion(paymentStream, 'no_stream', null);
    const { scheme, network, asset, amount, payTo, nonce, validBefore, payloadHash, x402Version } = presented;
    const deferred = event('PaymentDeferred', {
      ...{ jobId, fingerprint, scheme, network, asset, amount, payTo, payer: presented.payer, nonce },
      ...{ validBefore, payloadHash, x402Version, scheduleId, ...quote.run },
      deferredAt: iso(deps.clock.now()),
    });
    await call.deadline.forAppend(append(deps, PAYMENT, view, [deferred]));
    return ALLOWED;
  } finally {
    slot();
  }
}
