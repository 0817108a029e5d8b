// A job's own steps: JobStarted, then attempts, then the closing append. The side effect is never repeated because the
// event log conflicted; a process that lost the stream stops and returns what is stored.

import type { Sent } from '#src/domain/event-fields.ts';
import { type EventOf, STREAM } from '#src/domain/events.ts';
import {
  completeJob,
  type Interruption,
  recordAttempt,
  type StartFacts,
  startJob,
} from '#src/domain/job/commands.ts';
import { planRetry } from '#src/domain/job/retry.ts';
import { absentJob, type CompletedJob, evolveJob, type Job } from '#src/domain/job/state.ts';
import type { Disclosure } from '#src/domain/receipt/disclosures.ts';
import { isoNow } from '#src/lib/iso.ts';
import type { NewEvent, StreamAppend } from '#src/ports/event-log.ts';
import { isOutage } from '#src/ports/outage.ts';
import {
  type AttemptReport,
  type Outbound,
  OutboundDefect,
  type OutboundRequest,
  type TargetResponse,
} from '#src/ports/outbound.ts';
import type { KeyedHash } from '#src/ports/signer.ts';
import {
  appendUnlessOvertaken,
  appendUntilKnown,
  envelope,
  JOB,
  loadSurely,
  PAYMENT,
} from '#src/usecases/process/stream.ts';
import {
  asChained,
  type CloseDeps,
  closeJob,
  closeUnsent,
  loadClosed,
  type RunningView,
} from './close-job.ts';
import { discloseAttempt, discloseResponse } from './disclosures.ts';

export type RunDeps = CloseDeps & { readonly outbound: Outbound; readonly keyedHash: KeyedHash };

/** `disclosures`: open what only this run could see: response, leaf certificates, addresses. */
export type Running = RunningView & {
  readonly kind: 'running';
  readonly disclosures: readonly Disclosure[];
};

/** `disclosures`: empty for a job that was not closed by its run. */
export type Ran = {
  readonly kind: 'closed';
  readonly job: CompletedJob;
  readonly disclosures: readonly Disclosure[];
  /** Of the last attempt, if its caller asked for it. It is in no event. */
  readonly response: TargetResponse | null;
};

/**
 * Appends JobStarted. If it is acknowledged after the lease, a recovering process may have closed the job, so nothing is
 * sent and the job is closed as `not_executed`. The same applies if the refund of the payment has begun by then, or the
 * payment was found missing: that is on another stream, so the payment is read after the start is stored, and a refund reads
 * the job after it has begun. Throws `WrongExpectedVersion` if another process started the job.
 */
export async function announceJob(deps: RunDeps, facts: AnnouncedFacts): Promise<Running | Ran> {
  const { append, started } = announcement(deps, facts);
  await appendUntilKnown(deps, append.stream, append.expected, append.events);
  const paid = facts.paymentStream === null ? null : await loadSurely(deps, PAYMENT, facts.paymentStream);
  return started(paid === null || paid.state.status === 'settled');
}

export type AnnouncedFacts = Omit<StartFacts, 'startedAt'>;

/**
 * `append`: of JobStarted. `started`: the job once that is stored; `buys` false: its payment bought nothing any more by then.
 * Stored together with the settlement of its payment, no refund can have begun before it.
 */
export type Announcement = { readonly append: StreamAppend; started(buys: boolean): Promise<Running | Ran> };

export function announcement(deps: RunDeps, facts: AnnouncedFacts): Announcement {
  const stream = STREAM.job(facts.jobId);
  const begun = deps.clock.monotonic();
  const starting = startJob({ ...facts, startedAt: isoNow(deps) });
  const events = envelope(deps, starting, facts.jobId);
  return {
    append: { stream, expected: 'no_stream', events },
    async started(buys) {
      const running = follow({ stream, state: absentJob, events: [], disclosures: [] }, starting, events);
      const late = deps.clock.monotonic() - begun >= running.state.started.leaseMs;
      return late || !buys ? closeNotExecuted(deps, facts.jobId) : running;
    },
  };
}

/**
 * Sends one request and records its outcome: with a retry announced and waited for, or with the completion and receipt. A
 * defect of this program, before, during or after the call, is never recorded as a failure of the target: it closes the job,
 * and the payment is refundable.
 */
export async function attempt(
  deps: RunDeps,
  running: Running,
  makeRequest: () => Promise<OutboundRequest>,
): Promise<Running | Ran> {
  const startedAt = isoNow(deps);
  let sent: Sent = 'no';
  let outcome: Outcome;
  try {
    const request = await makeRequest();
    sent = 'maybe';
    outcome = outcomeOf(deps, running, startedAt, await deps.outbound.send(request));
  } catch (cause) {
    if (isOutage(cause)) throw cause;
    return closeDefective(deps, running.state.started.jobId, sent, cause);
  }
  return outcome.kind === 'retry' ? announceRetry(deps, running, outcome) : complete(deps, running, outcome);
}

type Made = { readonly made: EventOf<'AttemptMade'>; readonly disclosures: readonly Disclosure[] };
/** Another attempt follows. */
type ToRetry = Made & { readonly kind: 'retry'; readonly waitMs: number };
type Final = Made & {
  readonly kind: 'final';
  readonly completed: EventOf<'JobCompleted'>;
  readonly response: TargetResponse | null;
};
type Outcome = ToRetry | Final;

function outcomeOf(deps: RunDeps, running: Running, startedAt: string, report: AttemptReport): Outcome {
  const { started, attempts } = running.state;
  const { jobId, attemptsAllowed, backoffMs } = started;
  const number = attempts.length + 1;
  const endedAt = isoNow(deps);
  const dice = deps.entropy.fraction();
  const retry = planRetry(report, { attempt: number, attemptsAllowed, backoffMs, dice });
  const opened = discloseAttempt(deps, jobId, number, report);
  const facts = { number, startedAt, endedAt, ...recorded(report), ...retry, ...opened.commitments };
  const recording = recordAttempt(facts, running.state);
  if (recording.kind === 'impossible') throw new Error(recording.why);
  const [made] = recording.events;
  const { disclosures } = opened;
  if (retry.willRetry) return { kind: 'retry', made, disclosures, waitMs: retry.waitMs };
  const { response } = report;
  const body = discloseResponse(deps, jobId, report);
  const completing = completeJob(body.facts, isoNow(deps), evolveJob(running.state, made));
  if (completing.kind === 'impossible') throw new Error(completing.why);
  const [completed] = completing.events;
  return { kind: 'final', made, disclosures: [...disclosures, ...body.disclosures], completed, response };
}

const recorded = ({
  phase,
  sent,
  status,
  errorCategory,
  reason,
  timings,
  tlsVersion,
  exempted,
  retryAfterMs,
}: AttemptReport) => ({
  phase,
  sent,
  status,
  errorCategory,
  reason,
  timings,
  tlsVersion,
  exempted,
  retryAfterMs,
});

async function complete(
  deps: RunDeps,
  running: Running,
  { made, disclosures, completed, response }: Final,
): Promise<Ran> {
  const job = await closeJob(deps, running, [made, completed]);
  if (job.completed.closedBy !== 'owner') return { kind: 'closed', job, disclosures: [], response: null };
  return { kind: 'closed', job, disclosures: [...running.disclosures, ...disclosures], response };
}

/** Records an attempt that will be followed by another, and waits until that one is due. */
async function announceRetry(
  deps: RunDeps,
  running: Running,
  { made, disclosures, waitMs }: ToRetry,
): Promise<Running | Ran> {
  const { jobId, leaseMs } = running.state.started;
  const last = running.events.at(-1);
  if (last === undefined) throw new Error('a running job has its JobStarted');
  const begun = deps.clock.monotonic();
  const events = envelope(deps, [made], jobId, last.id);
  const place = { stream: running.stream, expected: last.revision };
  if ((await appendUnlessOvertaken(deps, place, events)) === null) return closeNotExecuted(deps, jobId);
  await deps.clock.sleep(waitMs);
  // Acknowledged or awake too late: a recovering process may have closed the job, so nothing may be sent.
  if (deps.clock.monotonic() - begun >= leaseMs) return closeNotExecuted(deps, jobId);
  return follow({ ...running, disclosures: [...running.disclosures, ...disclosures] }, [made], events);
}

/**
 * For the owner, who is certain that the attempt that was due was not sent: recovery would record that it may have been.
 * Returns the stored job if it is closed already.
 */
export const closeNotExecuted = (deps: RunDeps, jobId: string): Promise<Ran> =>
  closeOwn(deps, jobId, 'not_executed');

/** `sent`: as far as the attempt came, unless the defect names it. */
function closeDefective(deps: RunDeps, jobId: string, sent: Sent, defect: unknown): Promise<Ran> {
  const isNamed = defect instanceof OutboundDefect;
  const known = isNamed ? defect.sent : sent;
  deps.logger.bug('an attempt failed in this program; its job is closed and its payment refundable', {
    jobId,
    sent: known,
    cause: isNamed ? defect.cause : defect,
  });
  return closeOwn(deps, jobId, known === 'no' ? 'not_executed' : 'interrupted_unknown');
}

async function closeOwn(deps: RunDeps, jobId: string, cause: Interruption): Promise<Ran> {
  const closed = await closeUnsent(deps, await loadSurely(deps, JOB, jobId), cause, 'owner');
  const job = closed ?? (await loadClosed(deps, jobId));
  return { kind: 'closed', job, disclosures: [], response: null };
}

function follow(
  before: Pick<Running, 'stream' | 'events' | 'disclosures'> & { readonly state: Job },
  made: readonly EventOf<'JobStarted' | 'AttemptMade'>[],
  appended: readonly NewEvent[],
): Running {
  const { stream, disclosures } = before;
  const state = made.reduce<Job>(evolveJob, before.state);
  if (state.status !== 'running') throw new Error('a job with an attempt left is running');
  const events = [...before.events, ...asChained(stream, before.events.length, appended)];
  return { kind: 'running', stream, state, events, disclosures };
}
