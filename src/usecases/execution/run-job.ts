// One job from its announcement to its receipt: JobStarted, then attempts, then the closing append. The side effect
// is never repeated because the log conflicted; whoever lost the stream stops and answers what is stored.

import type { EventOf } from '#src/domain/events.ts';
import { STREAM } from '#src/domain/events.ts';
import {
  completeJob,
  isRefusedCommand,
  recordAttempt,
  type StartFacts,
  startJob,
} from '#src/domain/job/commands.ts';
import { planRetry } from '#src/domain/job/retry.ts';
import { absentJob, evolveJob, type Job, type RunningJob } from '#src/domain/job/state.ts';
import type { Disclosure } from '#src/domain/receipt/commitments.ts';
import { type NewEvent, WrongExpectedVersion } from '#src/ports/event-log.ts';
import type { Outbound, OutboundRequest } from '#src/ports/outbound.ts';
import type { KeyedHash } from '#src/ports/signer.ts';
import { appendUntilKnown, envelope, loadJob } from '#src/usecases/event-streams.ts';
import {
  asChained,
  type CloseDeps,
  type Closed,
  closeJob,
  closeUnsent,
  loadClosed,
  type RunningView,
} from './close-job.ts';
import { discloseAttempt, discloseResponse } from './disclosures.ts';

export type RunDeps = CloseDeps & { readonly outbound: Outbound; readonly keyedHash: KeyedHash };

export type JobPlan = {
  readonly facts: Omit<StartFacts, 'startedAt'>;
  /** Called once JobStarted is stored. */
  readonly started: () => void;
  /** The outbound request of one attempt, made anew each time (its timestamp is signed). */
  readonly request: () => Promise<OutboundRequest>;
};

export type Ran = Closed & {
  /** Opens what only this run could see: response, leaf certificates, addresses. Empty for a job closed elsewhere. */
  readonly disclosures: readonly Disclosure[];
};

/** Runs the job; null where another started it first (its stream tells). */
export async function runJob(deps: RunDeps, plan: JobPlan): Promise<Ran | null> {
  const { jobId } = plan.facts;
  const stream = STREAM.job(jobId);
  const begun = deps.clock.monotonic();
  const starting = startJob({ ...plan.facts, startedAt: isoNow(deps) }, absentJob);
  if (isRefusedCommand(starting)) throw new Error(starting.refusedCommand);
  const events = envelope(deps, starting, jobId);
  try {
    await appendUntilKnown(deps, stream, 'no_stream', events);
  } catch (error) {
    if (error instanceof WrongExpectedVersion) return null;
    throw error;
  }
  plan.started();
  const running = follow({ stream, state: absentJob, events: [] }, starting, events);
  const lease = starting[0].data.leaseMs;
  // Known too late: a recoverer may have closed it by now, so nothing may be sent.
  if (deps.clock.monotonic() - begun >= lease) return closeLate(deps, jobId);
  return attemptUntilDone(deps, plan, running, lease);
}

async function attemptUntilDone(
  deps: RunDeps,
  plan: JobPlan,
  first: RunningView,
  leaseMs: number,
): Promise<Ran> {
  const { jobId, attemptsAllowed, backoffMs } = plan.facts;
  const disclosures: Disclosure[] = [];
  for (let running = first, number = 1; ; number++) {
    const { report, facts } = await attemptOnce(deps, plan);
    const retry = planRetry(report, {
      attempt: number,
      attemptsAllowed,
      backoffMs,
      dice: deps.entropy.fraction(),
    });
    const opened = await discloseAttempt(deps, jobId, number, report);
    disclosures.push(...opened.disclosures);
    const made = recordAttempt({ number, ...facts, ...retry, ...opened.commitments }, running.state);
    if (isRefusedCommand(made)) throw new Error(made.refusedCommand);
    if (!retry.willRetry) {
      const response = await discloseResponse(deps, jobId, report);
      const closed = await complete(deps, running, made[0], response.facts);
      if (closed.job.completed.closedBy !== 'owner') return { ...closed, disclosures: [] };
      return { ...closed, disclosures: [...disclosures, ...response.disclosures] };
    }
    const begun = deps.clock.monotonic();
    const next = await announceRetry(deps, running, made);
    if (next === null) return closeLate(deps, jobId);
    running = next;
    await deps.clock.sleep(retry.waitMs ?? 0);
    // Known or awake too late: a recoverer may have closed the job by now, so nothing may be sent.
    if (deps.clock.monotonic() - begun >= leaseMs) return closeLate(deps, jobId);
  }
}

async function attemptOnce(deps: RunDeps, plan: JobPlan) {
  const startedAt = isoNow(deps);
  const report = await deps.outbound.send(await plan.request());
  const { phase, sent, status, errorCategory, timings, tlsVersion, exempted, retryAfterMs } = report;
  const endedAt = isoNow(deps);
  return {
    report,
    facts: {
      startedAt,
      endedAt,
      phase,
      sent,
      status,
      errorCategory,
      timings,
      tlsVersion,
      exempted,
      retryAfterMs,
    },
  };
}

async function complete(
  deps: RunDeps,
  running: RunningView,
  made: EventOf<'AttemptMade'>,
  response: Pick<EventOf<'JobCompleted'>['data'], 'responseBytes' | 'truncated' | 'responseCommitment'>,
): Promise<Closed> {
  const completed = completeJob(response, isoNow(deps), evolveJob(running.state, made));
  if (isRefusedCommand(completed)) throw new Error(completed.refusedCommand);
  return closeJob(deps, running, [made, completed[0]]);
}

/** Records an attempt that will be followed by another; null where another wrote to the job first. */
async function announceRetry(
  deps: RunDeps,
  running: RunningView,
  made: readonly [EventOf<'AttemptMade'>],
): Promise<RunningView | null> {
  const last = running.events.at(-1);
  if (last === undefined) throw new Error('a running job has its JobStarted');
  const events = envelope(deps, made, running.state.started.jobId, last.id);
  try {
    await appendUntilKnown(deps, running.stream, last.revision, events);
  } catch (error) {
    if (error instanceof WrongExpectedVersion) return null;
    throw error;
  }
  return follow(running, made, events);
}

/** The owner knows that the attempt which was due was not sent, and closes the job so; or finds it closed already. */
async function closeLate(deps: RunDeps, jobId: string): Promise<Ran> {
  const closed = await closeUnsent(deps, await loadJob(deps.log, jobId), 'not_executed');
  return { ...(closed ?? (await loadClosed(deps, jobId))), disclosures: [] };
}

function follow(
  view: { readonly stream: string; readonly state: Job; readonly events: RunningView['events'] },
  events: readonly EventOf<'JobStarted' | 'AttemptMade'>[],
  appended: readonly NewEvent[],
): RunningView {
  const state = events.reduce<Job>(evolveJob, view.state);
  if (state.status !== 'running') throw new Error('a job that goes on is running');
  const running: RunningJob = state;
  const recorded = asChained(view.stream, view.events.length, appended);
  return { stream: view.stream, state: running, events: [...view.events, ...recorded] };
}

const isoNow = (deps: Pick<RunDeps, 'clock'>) => new Date(deps.clock.now()).toISOString();
