// A job: what its events say is true of it. What may happen next is decided in commands.ts.

import type { AttemptMade, JobCompleted, JobStarted, ReceiptSigned } from '../events/job.ts';
import type { JobEvent } from '../events.ts';

export type Job =
  | { readonly status: 'absent' }
  | { readonly status: 'running'; readonly started: JobStarted; readonly attempts: readonly AttemptMade[] }
  | {
      /** Completed; the receipt is null only where the final append was not whole, which no log allows. */
      readonly status: 'completed';
      readonly started: JobStarted;
      readonly attempts: readonly AttemptMade[];
      readonly completed: JobCompleted;
      readonly receipt: ReceiptSigned | null;
    };

export type RunningJob = Extract<Job, { status: 'running' }>;
export type CompletedJob = Extract<Job, { status: 'completed' }>;

export const absentJob: Job = { status: 'absent' };

/** Folds one event; an event that cannot follow the state leaves it as it was (the audit reports it). */
export function evolveJob(job: Job, event: JobEvent): Job {
  switch (event.type) {
    case 'JobStarted':
      return job.status === 'absent' ? { status: 'running', started: event.data, attempts: [] } : job;
    case 'AttemptMade':
      return job.status === 'running' ? { ...job, attempts: [...job.attempts, event.data] } : job;
    case 'JobCompleted':
      return job.status === 'running'
        ? { ...job, status: 'completed', completed: event.data, receipt: null }
        : job;
    case 'ReceiptSigned':
      return job.status === 'completed' && job.receipt === null ? { ...job, receipt: event.data } : job;
    default:
      return event satisfies never;
  }
}

/** True while the job's owner may send another request: just started, or the last attempt announced a retry. */
export function mayAttempt(job: RunningJob): boolean {
  const last = job.attempts.at(-1);
  return last === undefined || last.willRetry;
}
