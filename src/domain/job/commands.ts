// What may happen to a job: facts in, events out, or why it is impossible. Time and ids are arguments.

import type { AttemptMade, JobCompleted } from '../events/job.ts';
import { type EventFacts, type EventOf, type Events, event } from '../events.ts';
import { TIMES } from '../limits.ts';
import { longestRunMs } from './retry.ts';
import { type Job, mayAttempt, type RunningJob } from './state.ts';

/** The job's state does not permit the command: a programming error of the caller, not a response to a client. */
export type Impossible = {
  readonly kind: 'impossible';
  readonly why: 'job_not_running' | 'attempt_out_of_order' | 'no_attempt_left' | 'attempt_pending';
};

const impossible = (why: Impossible['why']): Impossible => ({ kind: 'impossible', why });

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

export function recordAttempt(
  attempt: AttemptFacts,
  job: Job,
): Events<[EventOf<'AttemptMade'>]> | Impossible {
  if (job.status !== 'running') return impossible('job_not_running');
  if (!mayAttempt(job)) return impossible('no_attempt_left');
  if (attempt.number !== job.attempts.length + 1) return impossible('attempt_out_of_order');
  if (attempt.willRetry && attempt.number >= job.started.attemptsAllowed)
    return impossible('no_attempt_left');
  const outcome = attempt.errorCategory === null ? 'succeeded' : 'failed';
  const made = event('AttemptMade', { jobId: job.started.jobId, outcome, ...attempt });
  return { kind: 'events', events: [made] };
}

export type ResponseFacts = Pick<JobCompleted, 'responseBytes' | 'truncated' | 'responseCommitment'>;

/** Completes a job whose last attempt is recorded and final; the last attempt decides the status. */
export function completeJob(
  response: ResponseFacts,
  completedAt: string,
  job: Job,
): Events<[EventOf<'JobCompleted'>]> | Impossible {
  if (job.status !== 'running') return impossible('job_not_running');
  const last = job.attempts.at(-1);
  if (last === undefined || last.willRetry) return impossible('attempt_pending');
  const completed = completion(job, last, { ...response, closedBy: 'owner', completedAt });
  return { kind: 'events', events: [completed] };
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
): Events<[EventOf<'AttemptMade'>, EventOf<'JobCompleted'>]> | Impossible {
  if (job.status !== 'running') return impossible('job_not_running');
  if (!mayAttempt(job)) return impossible('no_attempt_left');
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
    reason: known ? 'not_executed' : 'interrupted',
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
  const completed = completion(job, attempt.data, { ...response, closedBy, completedAt: at });
  return { kind: 'events', events: [attempt, completed] };
}
