// What may happen to a job: facts in, events or a refusal out. Time and ids are arguments.

import type { AttemptMade, JobCompleted } from '../events/job.ts';
import { type EventFacts, type EventOf, event } from '../events.ts';
import { TIMES } from '../limits.ts';
import { longestRunMs } from './retry.ts';
import { type Job, mayAttempt, type RunningJob } from './state.ts';

/** Why a command is impossible: a programming error of the caller, not a response to a client. */
export type JobRefusal = 'job_not_running' | 'attempt_out_of_order' | 'no_attempt_left' | 'attempt_pending';
export type RefusedCommand = { readonly refusedCommand: JobRefusal };

const refusedCommand = (reason: JobRefusal): RefusedCommand => ({ refusedCommand: reason });

export function isRefusedCommand(value: object): value is RefusedCommand {
  return 'refusedCommand' in value;
}

/** How long a job may hold its lease, in ms: its longest run and a margin for the log. */
export function leaseMs(attempts: number, timeoutMs: number): number {
  return longestRunMs(attempts, timeoutMs) + TIMES.leaseMarginMs;
}

export type StartFacts = Omit<EventFacts<'JobStarted'>, 'leaseMs'>;

export function startJob(facts: StartFacts): [EventOf<'JobStarted'>] {
  const lease = leaseMs(facts.attemptsAllowed, facts.timeoutMs);
  return [event('JobStarted', { ...facts, leaseMs: lease })];
}

export type AttemptFacts = Omit<EventFacts<'AttemptMade'>, 'jobId' | 'outcome'>;

export function recordAttempt(attempt: AttemptFacts, job: Job): [EventOf<'AttemptMade'>] | RefusedCommand {
  if (job.status !== 'running') return refusedCommand('job_not_running');
  if (!mayAttempt(job)) return refusedCommand('no_attempt_left');
  if (attempt.number !== job.attempts.length + 1) return refusedCommand('attempt_out_of_order');
  if (attempt.willRetry && attempt.number >= job.started.attemptsAllowed)
    return refusedCommand('no_attempt_left');
  const outcome = attempt.errorCategory === null ? 'succeeded' : 'failed';
  return [event('AttemptMade', { jobId: job.started.jobId, outcome, ...attempt })];
}

export type ResponseFacts = Pick<JobCompleted, 'responseBytes' | 'truncated' | 'responseCommitment'>;

/** Completes a job whose last attempt is recorded and final; the last attempt decides the status. */
export function completeJob(
  response: ResponseFacts,
  completedAt: string,
  job: Job,
): [EventOf<'JobCompleted'>] | RefusedCommand {
  if (job.status !== 'running') return refusedCommand('job_not_running');
  const last = job.attempts.at(-1);
  if (last === undefined || last.willRetry) return refusedCommand('attempt_pending');
  return [completion(job, last, { ...response, closedBy: 'owner', completedAt })];
}

/** `last`: the job's last attempt, which decides the status. */
function completion(
  { started: { jobId, decisionId } }: RunningJob,
  { number, outcome, status, errorCategory }: AttemptMade,
  rest: ResponseFacts & Pick<JobCompleted, 'closedBy' | 'completedAt'>,
): EventOf<'JobCompleted'> {
  const facts = { status: outcome, attempts: number, responseStatus: status, errorCategory };
  return event('JobCompleted', { jobId, decisionId, ...facts, ...rest });
}

/** `interrupted_unknown`: the request may have been sent. `not_executed`: its owner is certain that it was not. */
export type Interruption = 'interrupted_unknown' | 'not_executed';

export function closeInterrupted(
  cause: Interruption,
  at: string,
  job: Job,
  closedBy: JobCompleted['closedBy'] = cause === 'not_executed' ? 'owner' : 'recovery',
): [EventOf<'AttemptMade'>, EventOf<'JobCompleted'>] | RefusedCommand {
  if (job.status !== 'running') return refusedCommand('job_not_running');
  if (!mayAttempt(job)) return refusedCommand('no_attempt_left');
  const known = cause === 'not_executed';
  const attempt = event('AttemptMade', {
    jobId: job.started.jobId,
    number: job.attempts.length + 1,
    startedAt: at,
    endedAt: at,
    phase: known ? 'dns' : 'request',
    sent: known ? 'no' : 'maybe',
    outcome: 'failed',
    status: null,
    errorCategory: cause,
    timings: { dnsMs: null, connectMs: null, tlsMs: null, ttfbMs: null, totalMs: 0 },
    tlsVersion: null,
    exempted: false,
    leafCommitment: null,
    addressCommitment: null,
    retryAfterMs: null,
    willRetry: false,
    waitMs: null,
  });
  const response = { responseBytes: null, truncated: false, responseCommitment: null };
  return [attempt, completion(job, attempt.data, { ...response, closedBy, completedAt: at })];
}
