// Buys runs of schedules: a payment is verified and pledged to a schedule, and nothing is settled before its run is due. What
// is refused stores nothing.
import type { RecordedEvent } from '#src/domain/event-codec.ts';
import { type EventOf, event, type PaymentEvent, type ScheduleEvent, STREAM } from '#src/domain/events.ts';
import { makeId } from '#src/domain/ids.ts';
import { isRecorded, type Payment } from '#src/domain/payment/state.ts';
import { ALLOWED, type Allowed, Fault, isRefused, type Refused, refused } from '#src/domain/refusal.ts';
import { defineSchedule, firstRun, fundRun as fund, over } from '#src/domain/schedule/commands.ts';
import { RUN_TIMES, SCHEDULE_LIMITS } from '#src/domain/schedule/limits.ts';
import type { ScheduleRequest } from '#src/domain/schedule/plan.ts';
import { readSealedRequest } from '#src/domain/schedule/sealed.ts';
import type { DefinedSchedule, PlannedRun, Schedule } from '#src/domain/schedule/state.ts';
import { iso } from '#src/lib/iso.ts';
import { orLogFault } from '#src/ports/outage.ts';
import type { PresentedPayment } from '#src/ports/payments.ts';
import { judgeRequest, type ReadRequest, readRequest } from '#src/usecases/decisions/judge-request.ts';
import { countWalletFailure, takePaidSlot } from '#src/usecases/execution/admission.ts';
import {
  accountOf,
  authorizedBy,
  type Call,
  callOf,
  isContract,
  recordedOf,
  unprovenPayer,
} from '#src/usecases/execution/execution-call.ts';
import { findPledge, inProgress, paymentReused } from '#src/usecases/execution/idempotency.ts';
import { verifyPayment, withVerifyPlace } from '#src/usecases/execution/payment-steps.ts';
import { eventIn } from '#src/usecases/process/read-events.ts';
import { decide, load, PAYMENT, SCHEDULE } from '#src/usecases/process/stream.ts';
import { answerInTime } from '#src/usecases/response-deadline.ts';
import { demandSigningKey } from '#src/usecases/signing-keys/active-keys.ts';
import { demandWholeRecord } from '#src/usecases/transparency/whole-record.ts';
import { hashOf, tokenOf } from './end-run.ts';
import { nextOf, noRun, quoteOf, readPlan, type ScheduleDeps, scheduleNotFound, timeOf } from './quote.ts';
import { clientOf, covered, holderOf, sealedPayment, takeDay, tooMany } from './ticket-worth.ts';

export type Buyer = {
  /** null: calls are free. */
  readonly presented: PresentedPayment | null;
  readonly payer: string;
  /** An opaque key of the client address. */
  readonly client: string;
  /** The token of the schedule that a further run is bought for; null: none was sent. */
  readonly token: string | null;
};

export type Bought = {
  readonly schedule: DefinedSchedule;
  readonly run: PlannedRun;
  /** null: the schedule was defined before, or its first payment may be settled. */
  readonly cancelToken: string | null;
};

/** What a payment is, or is to be, pledged to. */
type Order = {
  readonly scheduleId: string;
  readonly jobId: string;
  /** Of the schedule: keyed hash. */
  readonly fingerprint: string;
  readonly run: PlannedRun;
  readonly plan: Pick<DefinedSchedule['defined'], 'catchUpSeconds' | 'endsAt'>;
  /** The payment is pledged to it already: an earlier purchase was cut off. */
  readonly isPledged: boolean;
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
  const { fingerprint } = plan.defined;
  return purchase(deps, buyer, plan.read, async (call) => {
    const known = await findTicket(deps, buyer);
    if (known !== null && isRefused(known)) return known;
    if (known !== null && known.pledge.fingerprint !== fingerprint) return paymentReused();
    if (known?.bought != null) return firstBought(deps, known, known.bought);
    const run = known === null ? firstRun(plan.defined, timeOf(deps)) : runOf(known.pledge);
    if (run === null) return noRun();
    const order = orderOf(deps, known, { fingerprint, run, plan: plan.defined });
    const { scheduleId } = order;
    const ticket = await takeTicket(deps, call, order, buyer, { isNew: true });
    if (ticket === null || isRefused(ticket)) return ticket;
    const text = JSON.stringify(plan.webhook);
    const untilMs = keptUntil(plan.defined.endsAt);
    const sealed = await deps.vault.put({ name: scheduleId, text, untilMs, seat: null });
    if (sealed === null) throw new Error('a text that is not counted is always stored');
    const cancelToken = tokenOf(deps, scheduleId);
    const facts = {
      ...plan.defined,
      scheduleId,
      mode: deps.payments.mode,
      cancelHash: hashOf(cancelToken),
      sealed,
    };
    const { view } = await call.deadline.forAppend(
      decide<Schedule, ScheduleEvent, null>(deps, SCHEDULE, scheduleId, ({ state }) => {
        // A copy of this purchase may have defined it meanwhile.
        const isDefined = state.status !== 'absent';
        return {
          events: isDefined ? [] : defineSchedule(facts, order.run, ticket, timeOf(deps)),
          answer: null,
        };
      }),
    );
    return boughtOf(view.state, order.run, cancelToken);
  });
}

/** One more run: the first without a payment. By the payer of run 1, or with the schedule's token. */
export async function fundRun(
  deps: ScheduleDeps,
  scheduleId: string,
  buyer: Buyer,
): Promise<Bought | Refused> {
  const { state } = await orLogFault(load(deps, SCHEDULE, scheduleId), UNSETTLED);
  if (state.status === 'absent') return scheduleNotFound();
  const mayFund =
    buyer.token === null
      ? buyer.presented !== null && holderOf(deps, buyer) === state.holder
      : hashOf(buyer.token) === state.defined.cancelHash;
  if (!mayFund) return notYours();
  const asked = await orLogFault(findTicket(deps, buyer), UNSETTLED);
  if (asked !== null && !isRefused(asked) && asked.pledge.scheduleId === scheduleId && asked.bought !== null)
    return { schedule: state, run: asked.bought, cancelToken: null };
  const text = await deps.vault.take(state.defined.sealed);
  if (text === null) return over(state.status === 'cancelled' ? 'cancelled' : 'complete');
  const read = readRequest(readSealedRequest(text), '/webhook');
  if (isRefused(read)) return read;
  return purchase(deps, buyer, read, async (call) => {
    const before = (await load(deps, SCHEDULE, scheduleId)).state;
    if (before.status === 'absent') return scheduleNotFound();
    const known = await findTicket(deps, buyer);
    if (known !== null && isRefused(known)) return known;
    if (known !== null && known.pledge.scheduleId !== scheduleId) return paymentReused();
    if (known?.bought != null) return { schedule: before, run: known.bought, cancelToken: null };
    const next = nextOf(deps, before);
    if (isRefused(next)) return next;
    const { defined, tickets } = before;
    if (tickets.length >= SCHEDULE_LIMITS.ticketsPerSchedule.max)
      return tooMany(SCHEDULE_LIMITS.ticketsPerSchedule);
    const facts = { scheduleId, fingerprint: defined.fingerprint, run: next.run, plan: defined };
    const order = orderOf(deps, known, facts);
    const ticket = await takeTicket(deps, call, order, buyer, { isNew: false });
    if (ticket === null || isRefused(ticket)) return ticket;
    const { view, answer } = await call.deadline.forAppend(
      decide<Schedule, ScheduleEvent, PlannedRun | Refused>(deps, SCHEDULE, scheduleId, (now) => {
        const again = now.state.status === 'absent' ? scheduleNotFound() : fundedRun(now.events, order.jobId);
        if (again !== null) return { events: [], answer: again };
        return funding(deps, call, now.state, order, ticket);
      }),
    );
    if (isRefused(answer)) await deps.vault.remove([order.jobId]);
    return isRefused(answer) ? answer : boughtOf(view.state, answer, null);
  });
}

/** The first run without a payment is the one that is funded: another buyer may have taken the one that was quoted. */
function funding(deps: ScheduleDeps, call: Call, schedule: Schedule, order: Order, ticket: Ticket) {
  const next = schedule.status === 'absent' ? scheduleNotFound() : nextOf(deps, schedule);
  if (schedule.status === 'absent' || isRefused(next)) return { events: [], answer: next as Refused };
  const valid = validateRun(deps, call, { ...order, run: next.run });
  if (isRefused(valid)) return { events: [], answer: valid };
  return { events: [...next.passed, fund(schedule, next.run, ticket, timeOf(deps))], answer: next.run };
}

const notYours = () =>
  refused(
    'schedule_not_yours',
    'Only the payer of run 1 buys further runs, or a caller who sends the token of the schedule (authorization: Bearer).',
  );

function boughtOf(schedule: Schedule, run: PlannedRun, cancelToken: string | null): Bought {
  if (schedule.status === 'absent') throw new Error('a schedule that was appended to is defined');
  return { schedule, run, cancelToken };
}

const runOf = ({ run, dueAt }: PlannedRun): PlannedRun => ({ run, dueAt });

const UNSETTLED = 'nothing was settled. Repeat with the same payment header.';

const MAX_TRIES = 10;

/** Answers within the response deadline. `work` returns null if a copy of the purchase was first: it is repeated. */
async function purchase(
  deps: ScheduleDeps,
  { presented, payer, client }: Buyer,
  read: ReadRequest,
  work: (call: Call) => Promise<Bought | Refused | null>,
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
      const done = await work(call);
      if (done !== null) return done;
    }
    return inProgress(null);
  });
}

// ── a payment that was pledged before ───────────────────────────────────────────────────────────────────

type KnownTicket = {
  readonly pledge: EventOf<'PaymentDeferred'>['data'];
  readonly payment: Payment;
  readonly schedule: Schedule;
  /** The run that it was bought for; null: the purchase was cut off before. */
  readonly bought: PlannedRun | null;
};

/** What this payment was pledged to, whatever became of it; null: it is new. */
async function findTicket(
  deps: ScheduleDeps,
  { presented }: Pick<Buyer, 'presented'>,
): Promise<KnownTicket | null | Refused> {
  if (presented === null) return null;
  const payment = await load(deps, PAYMENT, STREAM.payment(presented.hash));
  const pledge = findPledge(payment);
  if (pledge === null) return payment.expected === 'no_stream' ? null : paymentReused();
  if (!isRecorded(authorizedBy(presented), pledge)) return paymentReused();
  const schedule = await load(deps, SCHEDULE, pledge.scheduleId);
  const bought = fundedRun(schedule.events, pledge.jobId);
  return { pledge, payment: payment.state, schedule: schedule.state, bought };
}

function fundedRun(events: readonly RecordedEvent[], jobId: string): PlannedRun | null {
  for (const recorded of events) {
    const { type, data } = eventIn(recorded);
    if (type === 'RunFunded' && data.jobId === jobId) return runOf(data);
  }
  return null;
}

/** The same answer as to the first purchase. A settled authorization can be rebuilt from the chain: it proves no payer. */
function firstBought(
  deps: ScheduleDeps,
  { pledge, payment, schedule }: KnownTicket,
  run: PlannedRun,
): Bought {
  const cancelToken = payment.status === 'absent' ? tokenOf(deps, pledge.scheduleId) : null;
  return boughtOf(schedule, run, cancelToken);
}

function orderOf(
  deps: ScheduleDeps,
  known: KnownTicket | null,
  facts: Pick<Order, 'fingerprint' | 'run' | 'plan'> & { readonly scheduleId?: string },
): Order {
  if (known !== null) {
    const { scheduleId, jobId } = known.pledge;
    return { ...facts, scheduleId, jobId, isPledged: true };
  }
  const scheduleId = facts.scheduleId ?? makeId('sch', deps.entropy.bytes(16));
  return { ...facts, scheduleId, jobId: makeId('job', deps.entropy.bytes(16)), isPledged: false };
}

// ── a new ticket ────────────────────────────────────────────────────────────────────────────────────────

type Ticket = Parameters<typeof fund>[2];

/**
 * Judges the target and the payment, seals the authorization and pledges the payment. The key is durable before the run is
 * recorded as funded, and is one of the few that its holder may have; it is deleted again if the purchase is refused.
 */
async function takeTicket(
  deps: ScheduleDeps,
  call: Call,
  order: Order,
  buyer: Buyer,
  { isNew }: { readonly isNew: boolean },
): Promise<Ticket | Refused | null> {
  const { presented } = buyer;
  const { jobId } = order;
  const holder = holderOf(deps, buyer);
  const limit = presented === null ? SCHEDULE_LIMITS.ticketsPerClient : SCHEDULE_LIMITS.ticketsPerPayer;
  if (!order.isPledged) {
    if ((await deps.vault.held(holder)).length >= limit.max) return tooMany(limit);
    const judged = await judgeOrder(deps, call, order);
    if (judged === null || isRefused(judged)) return judged;
    const day = isNew ? await takeDay(deps, buyer) : ALLOWED;
    if (isRefused(day)) return day;
  }
  const validBefore = presented === null ? null : Number(presented.validBefore);
  const untilMs =
    validBefore === null ? keptUntil(order.plan.endsAt) : validBefore * 1000 + RUN_TIMES.endGraceMs;
  const text = sealedPayment(deps, buyer);
  const seat = { holder, max: limit.max, amount: BigInt(presented?.amount ?? 0) };
  const sealed = await deps.vault.put({ name: jobId, text, untilMs, seat });
  if (sealed === null) return tooMany(limit);
  const pledged = order.isPledged
    ? ALLOWED
    : await pledge(deps, call, order, holder).catch(async (cause: unknown) => {
        if (cause instanceof Fault) await deps.vault.remove([jobId]);
        throw cause;
      });
  if (pledged === null || isRefused(pledged)) {
    await deps.vault.remove([jobId]);
    return pledged;
  }
  const { paymentStream } = call.lookup;
  const client = clientOf(deps, buyer);
  return { jobId, paymentStream, validBefore, holder, client, sealed: presented === null ? null : sealed };
}

/** Until when the keys of a schedule are kept that have no earlier end: Unix ms. */
const keptUntil = (endsAt: string): number => Date.parse(endsAt) + 86_400_000;

function validateRun(deps: ScheduleDeps, { presented }: Call, { run, plan }: Order) {
  const nowMs = deps.clock.now();
  if (presented === null) return { kind: 'ticket', verifiedBy: 'key' } as const;
  const { untilMs } = quoteOf(nowMs, run, plan);
  return deps.payments.validateTicket(presented, { nowMs, dueMs: Date.parse(run.dueAt), untilMs });
}

/** Whether the target may be called, and the payment is good as far as this is known before its run. null: it is known by now. */
async function judgeOrder(deps: ScheduleDeps, call: Call, order: Order): Promise<Allowed | Refused | null> {
  await demandWholeRecord(deps, 'nothing was sent, and no run is sold');
  demandSigningKey(deps);
  if (!(await deps.sharedClock.agrees())) throw clockDiffers();
  const verdict = await judgeRequest(deps, call.read.target, call.payer);
  if (isRefused(verdict)) return verdict;
  const { presented } = call;
  const { paymentStream } = call.lookup;
  if (presented === null || paymentStream === null) return ALLOWED;
  const ticket = validateRun(deps, call, order);
  if (isRefused(ticket)) return ticket;
  const slot = await takePaidSlot(deps, {
    caller: unprovenPayer(call),
    client: call.client,
    account: accountOf(call),
    paymentStream,
    isNew: true,
  });
  if (isRefused(slot)) return slot;
  try {
    const { verifiedBy } = ticket;
    const verified = verifiedBy === 'key' ? { verified: true } : await verifyPayment(deps, call, verifiedBy);
    if (isContract(call) && isRefused(verified) && verified.refused === 'payment_required')
      await countWalletFailure(deps.quota, call);
    if (isRefused(verified)) return verified;
    return verified.verified ? ALLOWED : null;
  } finally {
    slot();
  }
}

const clockDiffers = () =>
  new Fault(
    'schedules_unavailable',
    'The clock of this service and that of its database differ: no run is sold until they agree.',
    { retryAfterSeconds: 60 },
  );

/** Appends PaymentDeferred if the payer's balance covers its open runs, this one included. null: a copy was first. */
async function pledge(
  deps: ScheduleDeps,
  call: Call,
  order: Order,
  holder: string,
): Promise<Allowed | Refused | null> {
  const { presented } = call;
  const { paymentStream } = call.lookup;
  if (presented === null || paymentStream === null) return ALLOWED;
  const worth = await withVerifyPlace(deps, call, () => covered(deps, presented, holder));
  if (isRefused(worth)) return worth;
  const { jobId, fingerprint, scheduleId, run } = order;
  const deferred = event('PaymentDeferred', {
    jobId,
    fingerprint,
    ...recordedOf(presented),
    scheduleId,
    run: run.run,
    dueAt: run.dueAt,
    deferredAt: iso(deps.clock.now()),
  });
  const { answer } = await call.deadline.forAppend(
    decide<Payment, PaymentEvent, boolean>(deps, PAYMENT, paymentStream, ({ expected }) => {
      const isFirst = expected === 'no_stream';
      return { events: isFirst ? [deferred] : [], answer: isFirst };
    }),
  );
  return answer ? ALLOWED : null;
}
