// Whether an event can follow what a job's stream says before it: the commands that write such events are asked what
// they would have written.
import type { JobEvent } from '../events.ts';
import {
  closeInterrupted,
  completeJob,
  type Interruption,
  isRefusedCommand,
  type JobRefusal,
  recordAttempt,
} from '../job/commands.ts';
import type { AttemptMade, JobCompleted, JobStarted } from '../job/events.ts';
import type { Job } from '../job/state.ts';
import { JOB_SLACK_MS } from './clock-tolerance.ts';
import type { Fault } from './event-location.ts';
import { same } from './same.ts';

export function jobFaults(job: Job, event: JobEvent): readonly Fault[] {
  switch (event.type) {
    case 'JobStarted':
      return job.status === 'absent' ? startFaults(event.data) : [impossible('the job has started already')];
    case 'AttemptMade':
      return attemptFaults(job, event.data);
    case 'JobCompleted':
      return completionFaults(job, event.data);
    case 'ReceiptSigned':
      if (job.status !== 'completed') {
        return [
          { kind: 'receipt_without_job', message: 'a receipt of a job that is not completed before it' },
        ];
      }
      return job.receipt === null
        ? []
        : [{ kind: 'receipt_repeated', message: 'the job has a receipt already' }];
    default:
      return event satisfies never;
  }
}

const impossible = (message: string): Fault => ({ kind: 'job_event_impossible', message });

function startFaults(started: JobStarted): readonly Fault[] {
  const { mode, route, payment, paymentStream, decisionId, decisionHash } = started;
  const faults: Fault[] = [];
  const demand = (holds: boolean, message: string) => {
    if (!holds) faults.push(impossible(message));
  };
  demand(
    (mode === 'x402') === (payment !== null),
    `a job of mode ${mode} ${payment ? 'has' : 'has no'} payment`,
  );
  demand((payment === null) === (paymentStream === null), 'a payment and its stream come together');
  demand((decisionId === null) === (decisionHash === null), 'a decision and its hash come together');
  const guided = route === 'execute/guided-webhook';
  demand(guided === (decisionId !== null), 'a guided job has a decision, and no other has');
  return faults;
}

const REFUSALS: Readonly<Record<JobRefusal, string>> = {
  job_exists: 'the job has started already',
  job_not_running: 'the job does not run here',
  attempt_out_of_order: 'attempts do not count 1, 2, 3',
  no_attempt_left: 'no attempt was due, or more are announced than are allowed',
  attempt_pending: 'an attempt is still due',
};

function attemptFaults(job: Job, made: AttemptMade): readonly Fault[] {
  const { v: _, jobId: __, outcome: ___, ...facts } = made;
  const expected = recordAttempt(facts, job);
  if (isRefusedCommand(expected)) return [impossible(REFUSALS[expected.refusedCommand])];
  if (!same(expected[0].data, made)) return [impossible('the outcome is not that of the error category')];
  if (made.willRetry && made.errorCategory === null) return [impossible('a success is not retried')];
  if (made.willRetry !== (made.waitMs !== null)) return [impossible('a wait goes with a retry')];
  const cause = interruptionOf(made);
  if (cause === null) return timeFaults(job, made);
  const closing = closeInterrupted(cause, made.endedAt, job);
  if (!isRefusedCommand(closing) && same(closing[0].data, made)) return [];
  return [impossible('nothing is known of an attempt that nobody saw')];
}

const isBefore = (a: string, b: string): boolean => Date.parse(a) < Date.parse(b) - JOB_SLACK_MS;

function timeFaults(job: Job, { startedAt, endedAt }: AttemptMade): readonly Fault[] {
  if (isBefore(endedAt, startedAt)) return [impossible('the attempt ends before it starts')];
  const early = job.status === 'running' && isBefore(startedAt, job.started.startedAt);
  return early ? [impossible('the attempt starts before its job')] : [];
}

const interruptionOf = ({ errorCategory }: AttemptMade): Interruption | null =>
  errorCategory === 'interrupted_unknown' || errorCategory === 'not_executed' ? errorCategory : null;

function completionFaults(job: Job, completed: JobCompleted): readonly Fault[] {
  const { responseBytes, truncated, responseCommitment, completedAt } = completed;
  const response = { responseBytes, truncated, responseCommitment };
  const expected = completeJob(response, completedAt, job);
  if (isRefusedCommand(expected)) return [impossible(REFUSALS[expected.refusedCommand])];
  const last = job.status === 'running' ? job.attempts.at(-1) : undefined;
  const cause = last === undefined ? null : interruptionOf(last);
  const closedBy = cause === 'interrupted_unknown' ? 'recovery' : 'owner';
  const told = same({ ...expected[0].data, closedBy }, completed);
  const unseen = cause === null || (responseBytes === null && responseCommitment === null && !truncated);
  const whole = (responseBytes === null) === (responseCommitment === null);
  if (told && unseen && whole) return [];
  return [
    {
      kind: 'job_completion_mismatch',
      message: 'the completion tells something else than the attempts before it',
    },
  ];
}
