// The paid execution as a state machine, in the order that loses nothing: what is known is answered first, then the
// request is judged, then the money moves, then the call is made.
//
//   lookUp ─▶ judge ─▶ admit ─▶ verify ─▶ reserve ─▶ claim ─▶ settle ─▶ start ─▶ attempt* ─▶ done
//
// A step takes the state and returns the next one, or the refusal. A call that was accepted before, or whose
// key is held by an unserved payment, goes from admit to claim. If another call wrote to a stream first
// (`WrongExpectedVersion`), the machine returns to lookUp: in one place, at most MAX_LOOK_UPS times.
import { isOwnLoop } from '#src/domain/destination/headers.ts';
import type { PaymentFacts } from '#src/domain/event-fields.ts';
import { makeId } from '#src/domain/ids.ts';
import { claimKey } from '#src/domain/payment/claim.ts';
import { ALLOWED, isRefused, type Refused, refused } from '#src/domain/refusal.ts';
import { isoNow } from '#src/lib/iso.ts';
import { EventLogUnavailable, WrongExpectedVersion } from '#src/ports/event-log.ts';
import { isOutage } from '#src/ports/outage.ts';
import {
  type JudgeDeps,
  judgeRequest,
  readRequest,
  takeQuota,
} from '#src/usecases/decisions/judge-request.ts';
import { appendUntilKnown, envelope } from '#src/usecases/process/stream.ts';
import { startResponseDeadline } from '#src/usecases/response-deadline.ts';
import { demandSigningKey } from '#src/usecases/signing-keys/active-keys.ts';
import { demandWholeRecord, type RecordDeps } from '#src/usecases/transparency/whole-record.ts';
import { countWalletFailure, type PaidSlotDeps, takePaidSlot, validatePayment } from './admission.ts';
import type { RequestDisclosures } from './disclosures.ts';
import {
  accountOf,
  answeredFor,
  type Call,
  callOf,
  type ExecuteInput,
  type Execution,
  isAnonymous,
  isContract,
  openRequest,
  outboundRequest,
  ranNow,
  replayOf,
  type SendDeps,
  unprovenPayer,
} from './execution-call.ts';
import { findKnown, inProgress, type Known, type LookUpDeps, type Streams } from './idempotency.ts';
import { countUncharged, type PaymentDeps, reservePayment, verifyPayment } from './payment-steps.ts';
import type { Release, Turn, Turns } from './process-limits.ts';
import { releasePayment } from './release-payment.ts';
import { demandDue, runOver } from './run-due.ts';
import {
  announceJob,
  announcement,
  attempt,
  closeNotExecuted,
  type Ran,
  type RunDeps,
  type Running,
} from './run-job.ts';
import { type Plan, settlePayment, unconfirmed } from './settle-payment.ts';
import { type Starting, startFacts } from './start-facts.ts';

export type ExecuteDeps = RunDeps &
  RecordDeps &
  PaymentDeps &
  JudgeDeps &
  LookUpDeps &
  PaidSlotDeps &
  SendDeps & { readonly takeTurn: Turns };

type Accepted = Extract<Known, { kind: 'new' | 'resume' | 'held' }>;

/** What this call has passed, and does not pass twice however often it returns to lookUp. */
type Passed = {
  readonly slot: Release | null;
  /** `late` and `stalled`: it has waited for its turn in vain. */
  readonly turn: Turn | 'late' | 'stalled' | null;
  readonly verified: boolean;
  readonly counted: boolean;
  /** The job whose payment this call reserved, so that its settle call is the first. */
  readonly reservedFor: string | null;
};

type OfNew<S> = { readonly step: S; readonly known: Extract<Known, { kind: 'new' }> };

type State = { readonly passed: Passed } & (
  | { readonly step: 'lookUp' }
  | OfNew<'judge'>
  | OfNew<'verify'>
  | OfNew<'reserve'>
  | { readonly step: 'admit'; readonly known: Accepted }
  | { readonly step: 'claim'; readonly plan: Plan; readonly streams: Streams }
  | { readonly step: 'settle'; readonly plan: Plan }
  | ({ readonly step: 'start' } & Starting)
  | { readonly step: 'attempt'; readonly running: Running; readonly opened: RequestDisclosures }
  | { readonly step: 'done'; readonly execution: Execution }
);
type At<S extends State['step']> = Extract<State, { readonly step: S }>;

const MAX_LOOK_UPS = 10;

const BEGIN: State = {
  step: 'lookUp',
  passed: { slot: null, turn: null, verified: false, counted: false, reservedFor: null },
};

/** Throws `Fault` for our own failures: nothing is charged twice and nothing is sent twice. */
export async function executeWebhook(deps: ExecuteDeps, input: ExecuteInput): Promise<Execution | Refused> {
  const read = readRequest(input.request);
  if (isRefused(read)) return read;
  const deadline = startResponseDeadline(deps.clock);
  const call = callOf(deps, input, read, deadline);
  let state = BEGIN;

  /** Keeps its slot until the fate of everything it began is known, also behind a caller that was answered before. */
  async function run(): Promise<Execution | Refused> {
    try {
      for (let lookUps = 0; state.step !== 'done'; ) {
        if (state.step === 'lookUp' && ++lookUps > MAX_LOOK_UPS) return inProgress(null);
        const { passed } = state;
        const next = await STEPS[state.step](deps, call, state as never).catch((error: unknown): State => {
          if (error instanceof WrongExpectedVersion) return { step: 'lookUp', passed };
          throw error;
        });
        if (isRefused(next)) {
          const isFailure = next.refused === 'payment_required' || next.refused === 'payment_reused';
          if (isContract(call) && isFailure) await countWalletFailure(deps.quota, call);
          return next;
        }
        state = next;
      }
      return state.execution;
    } finally {
      turnOf(state.passed)?.end();
      state.passed.slot?.();
    }
  }

  const done = run();
  // Here its job is known; behind a caller that was answered before, nothing else would show the defect.
  done.catch((cause: unknown) => {
    if (!isOutage(cause)) deps.logger.bug('an execution failed', { jobId: jobOf(state), cause });
  });
  try {
    return await Promise.race([done, deadline.passed]);
  } catch (cause) {
    if (cause instanceof EventLogUnavailable) turnOf(state.passed)?.stall();
    if (state.step === 'settle' && deadline.isOver()) throw unconfirmed(cause);
    throw answeredFor(call, jobIn(state), cause);
  } finally {
    deadline.end();
  }
}

type Step<S extends State['step']> = (
  deps: ExecuteDeps,
  call: Call,
  state: At<S>,
) => Promise<State | Refused>;

const STEPS: { readonly [S in Exclude<State['step'], 'done'>]: Step<S> } = {
  lookUp,
  judge,
  admit,
  verify,
  reserve,
  claim,
  settle,
  start,
  attempt: attemptOnce,
};

/** How far the job has come, for a caller that has to be answered before its result is known. */
function jobIn(state: State): { readonly jobId: string; readonly stored: boolean } | null {
  if (state.step === 'start') return { jobId: state.jobId, stored: false };
  return state.step === 'attempt' ? { jobId: state.running.state.started.jobId, stored: true } : null;
}

function jobOf(state: State): string | null {
  return 'plan' in state ? state.plan.jobId : (jobIn(state)?.jobId ?? null);
}

// ── the steps ───────────────────────────────────────────────────────────────────────────────────────────

/** null: it has none, or has waited in vain. */
const turnOf = ({ turn }: Passed): Turn | null => (typeof turn === 'object' ? turn : null);

/**
 * Calls of one key (or payment) take turns until one has claimed it; the others read what it wrote. One that has waited in
 * vain is answered with what is known; if that is nothing, as the first one was, or is in progress. Anyone can name a
 * contract wallet and its key, so its calls take turns by payment. What is known by its key alone is the payer's. An
 * authorization to another payee proves no payer, since it may be a copy of what is on chain; and a contract wallet's
 * signature proves none before the facilitator has verified it.
 */
async function lookUp(deps: ExecuteDeps, call: Call, state: State): Promise<State | Refused> {
  const { claimStream, paymentStream } = call.lookup;
  const name = isContract(call) ? paymentStream : (claimStream ?? paymentStream);
  if (name !== null && state.passed.turn === null) {
    const turn = await deps.takeTurn(name);
    return { step: 'lookUp', passed: { ...state.passed, turn } };
  }
  const { passed } = state;
  const known = await findKnown(deps, call.lookup);
  if (known.kind !== 'new' && known.by === 'key' && call.presented !== null) {
    const terms = deps.payments.validateTerms(call.presented);
    if (isRefused(terms)) return terms;
    if (call.presented.signer === 'contract' && !passed.verified) {
      const verified = await verifyPayment(deps, call);
      if (isRefused(verified)) return verified;
      return { step: 'lookUp', passed: { ...passed, ...verified } };
    }
  }
  switch (known.kind) {
    case 'refused':
      return known.refusal;
    case 'completed':
      return { step: 'done', passed, execution: replayOf(deps, call, known.job) };
    case 'new':
      if (passed.turn === 'stalled')
        throw new EventLogUnavailable({ cause: new Error('the call before waits for the event log') });
      if (passed.turn === 'late') return inProgress(null);
      return { step: passed.counted ? 'admit' : 'judge', passed, known };
    default:
      return { step: 'admit', passed, known };
  }
}

/** For new calls only: what was accepted once is not judged again. */
async function judge(deps: ExecuteDeps, call: Call, state: At<'judge'>): Promise<State | Refused> {
  // What is missing may be this call's payment: a 402 would ask for another one.
  await demandWholeRecord(deps, NOT_TAKEN);
  if (isOwnLoop(call.via, deps.pseudonym)) {
    return refused('relay_loop', 'This request came through this relay already: it would call itself.');
  }
  const { presented, payer } = call;
  const paying = presented === null ? ALLOWED : validatePayment(deps, call, presented);
  if (isRefused(paying)) {
    // It may have expired since the look-up, in which time a copy of it was accepted: that is no 402.
    const known = await findKnown(deps, call.lookup);
    const isNew = known.kind === 'new' || (isContract(call) && known.by !== 'payment');
    return isNew ? paying : { step: 'lookUp', passed: state.passed };
  }
  if (isRefused(call.approval)) return call.approval;
  const verdict = await judgeRequest(deps, call.read.target, payer);
  return isRefused(verdict) ? verdict : { ...state, step: 'admit' };
}

const NOT_TAKEN = 'nothing was sent, and no call is executed';

/** A slot in flight; a payer also has limits of its own (in demo mode all callers are one payer). */
async function admit(deps: ExecuteDeps, call: Call, state: At<'admit'>): Promise<State | Refused> {
  await demandWholeRecord(deps, NOT_TAKEN);
  demandSigningKey(deps);
  const { known } = state;
  const slot = state.passed.slot ?? (await takeSlot(deps, call, known));
  if (isRefused(slot)) return slot;
  const passed = { ...state.passed, slot };
  if (known.kind === 'new') return { step: 'verify', known, passed };
  turnOf(passed)?.end();
  const { jobId, streams } = known;
  const { payment } = streams;
  const [paymentStream, presented] =
    known.kind === 'held'
      ? [known.streams.payment.stream, null]
      : [call.lookup.paymentStream, call.presented];
  const plan = { jobId, paymentStream, payment, presented, first: passed.reservedFor === jobId };
  return { step: 'claim', passed, plan, streams };
}

async function takeSlot(deps: ExecuteDeps, call: Call, known: Accepted): Promise<Release | Refused> {
  const { paymentStream } = call.lookup;
  const isRun = call.run !== undefined;
  if (paymentStream === null) return deps.slots.take(call.payer, null, isRun ? 'runs' : 'calls');
  const { payment } = known.streams;
  if (known.kind === 'resume' && payment?.state.status === 'unknown') {
    deps.unconfirmed.add(accountOf(call), paymentStream);
  }
  const isNew = known.kind === 'new';
  const caller = isNew ? unprovenPayer(call) : call.payer;
  const stream = payment?.stream ?? paymentStream;
  const client = isRun ? null : call.client;
  return takePaidSlot(deps, { caller, client, account: accountOf(call), paymentStream: stream, isNew });
}

/** The facilitator's verdict, then one unit of the target's quota: the last steps before anything is written. */
async function verify(deps: ExecuteDeps, call: Call, state: At<'verify'>): Promise<State | Refused> {
  const { passed } = state;
  if (call.presented !== null && !passed.verified) {
    const verified = await verifyPayment(deps, call);
    if (isRefused(verified)) return verified;
    if (!verified.verified) return { step: 'lookUp', passed };
    return { ...state, passed: { ...passed, ...verified } };
  }
  if (passed.counted) return { ...state, step: 'reserve' };
  const quota = await takeQuota(deps, call.read.target, call.payer);
  return isRefused(quota) ? quota : { ...state, step: 'reserve', passed: { ...passed, counted: true } };
}

/** PaymentReserved: from here on the payment buys this job and no other. Where the log can, its key is claimed with it. */
async function reserve(deps: ExecuteDeps, call: Call, state: At<'reserve'>): Promise<State> {
  const { streams } = state.known;
  const jobId = call.run?.jobId ?? makeId('job', deps.entropy.bytes(16));
  const { payment, isClaimed } = await reservePayment(deps, call, streams, jobId);
  const { presented } = call;
  const plan = { jobId, paymentStream: call.lookup.paymentStream, payment, presented, first: true };
  const passed = { ...state.passed, reservedFor: jobId };
  if (!isClaimed) return { step: 'claim', passed, plan, streams };
  turnOf(passed)?.end();
  return { step: 'settle', passed, plan };
}

/** IdempotencyKeyClaimed: the last append before the settle call. A call that loses the key gives its payment up. */
async function claim(deps: ExecuteDeps, call: Call, state: At<'claim'>): Promise<State | Refused> {
  const { passed, plan, streams } = state;
  const { jobId, paymentStream } = plan;
  const { fingerprint } = call.lookup;
  const due = await demandDue(deps, call.run, paymentStream);
  if (isRefused(due)) return due;
  const view = streams.claim;
  const facts = { jobId, fingerprint, paymentStream, claimedAt: isoNow(deps) };
  const claiming = view && claimKey(facts, streams.release, view.state);
  if (claiming?.kind === 'lost') {
    const facts = { jobId, reason: 'key_lost', lostKeyTo: claiming.holder.jobId };
    if (paymentStream !== null) {
      await call.deadline.forAppend(releasePayment(deps, paymentStream, 'reserved', facts));
      await countUncharged(deps, call);
    }
    return { step: 'lookUp', passed };
  }
  const isNew = claiming !== null && claiming.events.length > 0;
  if (view !== null && isNew) {
    const events = envelope(deps, claiming.events, jobId);
    await call.deadline.forAppend(appendUntilKnown(deps, view.stream, view.expected, events));
  }
  turnOf(passed)?.end();
  // While the claim was appended, another call may have moved the payment: it is read again.
  return { step: 'settle', passed, plan: isNew ? { ...plan, payment: null } : plan };
}

/** The money moves once, or is found to have moved; where the log can, its settlement and JobStarted are one append. */
async function settle(deps: ExecuteDeps, call: Call, state: At<'settle'>): Promise<State | Refused> {
  const { passed, plan } = state;
  const { jobId, paymentStream } = plan;
  const opened = openRequest(deps, call, jobId);
  const starting = { step: 'start', passed, opened, jobId, paymentStream } as const;
  if (paymentStream === null) return { ...starting, payment: null };
  const announcing = (payment: PaymentFacts) =>
    announcement(deps, startFacts(deps, call, { ...starting, payment }));
  // When the payment of a run has settled, the run may be over.
  const announce = call.run === undefined ? announcing : null;
  const settled = await settlePayment(deps, { plan, paymentStream, call, announce });
  if (isRefused(settled)) return settled;
  if (settled.kind === 'look_up') return { step: 'lookUp', passed };
  const { payment, announced } = settled;
  if (announced === null) return { ...starting, payment };
  return begun(deps, call, { passed, opened }, await announced.started(true));
}

/**
 * JobStarted. A call with neither key nor payment that was answered 503 meanwhile is not sent: its caller cannot find it
 * again and repeats it.
 */
async function start(deps: ExecuteDeps, call: Call, state: At<'start'>): Promise<State | Refused> {
  const { deadline, run } = call;
  if (deadline.hasPassed() && isAnonymous(call)) throw new EventLogUnavailable();
  if (run !== undefined && deps.clock.now() > run.notAfter) return runOver('missed');
  const acknowledged = deadline.limitAppend();
  const started = await announceJob(deps, startFacts(deps, call, state)).finally(acknowledged);
  return begun(deps, call, state, started);
}

async function begun(
  deps: ExecuteDeps,
  call: Call,
  { passed, opened }: Pick<At<'start'>, 'passed' | 'opened'>,
  started: Running | Ran,
): Promise<State> {
  if (started.kind === 'closed') return finish(passed, started, opened);
  if (!call.deadline.hasPassed() || !isAnonymous(call))
    return { step: 'attempt', passed, running: started, opened };
  return finish(passed, await closeNotExecuted(deps, started.state.started.jobId), opened);
}

/** One attempt; the last one also completes the job and signs its receipt. */
async function attemptOnce(deps: ExecuteDeps, call: Call, state: At<'attempt'>): Promise<State> {
  const { passed, running, opened } = state;
  const next = await attempt(deps, running, () => outboundRequest(deps, call, running.state.started.jobId));
  return next.kind === 'running' ? { ...state, running: next } : finish(passed, next, opened);
}

const finish = (passed: Passed, ran: Ran, opened: RequestDisclosures): State => ({
  step: 'done',
  passed,
  execution: ranNow(ran, opened),
});
