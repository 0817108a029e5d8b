// Checks whether an event can follow the events before it in its job's stream, with the commands that write such events;
// and whether a job's receipt verifies and matches the job's events.
import type { KeyRecord } from '#src/domain/signing-keys/keys.ts';
import { type Json, sameJson } from '../canonical-json.ts';
import type { JobEvent } from '../events.ts';
import {
  closeInterrupted,
  completeJob,
  type Interruption,
  isRefusedCommand,
  type JobRefusal,
  recordAttempt,
} from '../job/commands.ts';
import type { AttemptMade, JobCompleted, JobStarted, ReceiptSigned } from '../job/events.ts';
import type { CompletedJob, Job } from '../job/state.ts';
import {
  type ChainedEvent,
  logOf,
  type ReadReceipt,
  type ReceiptPayload,
  receiptPayload,
} from '../receipt/payload.ts';
import type { CheckName, Primitives } from '../receipt/report.ts';
import { verifyReceipt } from '../receipt/verify.ts';
import { type Fault, RECEIPT_FINDINGS } from './finding.ts';

/** The clocks of one process over time, and of the owner and a recovering process, may differ by this much. */
const CLOCK_TOLERANCE_MS = 60_000;

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
        return [{ kind: 'receipt_without_job', message: 'a receipt precedes the completion of its job' }];
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
  demand(
    (payment === null) === (paymentStream === null),
    'a job has both a payment and its stream, or neither',
  );
  demand(
    (decisionId === null) === (decisionHash === null),
    'a job has both a decision and its hash, or neither',
  );
  const guided = route === 'execute/guided-webhook';
  demand(guided === (decisionId !== null), 'a guided job has a decision, and no other has');
  return faults;
}

const REFUSALS: Readonly<Record<JobRefusal, string>> = {
  job_not_running: 'the job does not run here',
  attempt_out_of_order: 'attempts do not count 1, 2, 3',
  no_attempt_left: 'no attempt was due, or more are announced than are allowed',
  attempt_pending: 'an attempt is still due',
};

function attemptFaults(job: Job, made: AttemptMade): readonly Fault[] {
  const { v: _, jobId: __, outcome: ___, ...facts } = made;
  const expected = recordAttempt(facts, job);
  if (isRefusedCommand(expected)) return [impossible(REFUSALS[expected.refusedCommand])];
  if (!sameJson(expected[0].data, made)) return [impossible('the outcome is not that of the error category')];
  if (made.willRetry && made.errorCategory === null) return [impossible('a success is not retried')];
  if (made.willRetry !== (made.waitMs !== null))
    return [impossible('only an attempt that is retried has a wait')];
  const cause = interruptionOf(made);
  if (cause === null) return timeFaults(job, made);
  const closing = closeInterrupted(cause, made.endedAt, job);
  if (!isRefusedCommand(closing) && sameJson(closing[0].data, made)) return [];
  return [impossible('an interrupted attempt has no status, time or certificate')];
}

const isBefore = (a: string, b: string): boolean => Date.parse(a) < Date.parse(b) - CLOCK_TOLERANCE_MS;

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
  const expectedOne = sameJson({ ...expected[0].data, closedBy }, completed);
  const unseen = cause === null || (responseBytes === null && responseCommitment === null && !truncated);
  const consistent = (responseBytes === null) === (responseCommitment === null);
  if (expectedOne && unseen && consistent) return [];
  return [
    {
      kind: 'job_completion_mismatch',
      message: 'the completion contradicts the attempts before it',
    },
  ];
}

/**
 * Makes the receipt verifier's checks, and checks that the payload is exactly the one that the events give. `read`: the
 * receipt. `events`: the job's, as recorded, up to JobCompleted. `keys`: as announced before the receipt.
 */
export async function receiptFaults(
  job: Omit<CompletedJob, 'receipt'>,
  events: readonly ChainedEvent[],
  signed: ReceiptSigned,
  read: ReadReceipt,
  keys: readonly KeyRecord[],
  primitives: Primitives,
): Promise<readonly Fault[]> {
  const { started, completed } = job;
  const { jws, receiptId } = signed;
  const facts = {
    jobId: started.jobId,
    receiptId,
    status: completed.status,
    responseStatus: completed.responseStatus,
    method: started.method,
    attempts: completed.attempts,
    decisionId: started.decisionId,
    targetCommitment: started.commitments.target_url,
    payment: started.payment,
    events,
  };
  const asked = { jws, receiptId, jobId: started.jobId, keys, job: facts, log: null };
  const report = await verifyReceipt(asked, primitives, read);
  const { payload } = read;
  const faults: Fault[] = [];
  for (const { name, ok } of report.checks) {
    const [kind, message] = RECEIPT_FINDINGS[name];
    // Every comparison with an unreadable payload fails: those failures are omitted.
    if (ok || faults.some((fault) => fault.kind === kind) || (payload === null && !BARE.has(name))) continue;
    const why =
      name === 'key_valid_at_issue' && isCompromised(keys, report.keyId, payload) ? `; ${COMPROMISED}` : '';
    faults.push({ kind, message: `${message} (${name})${why}` });
  }
  if (payload === null) return faults;
  if (!isEventOf(signed, payload, report.keyId)) {
    const message = 'decision, key or time of the event are not those of its receipt';
    faults.push({ kind: 'receipt_event_mismatch', message });
  }
  if (!isInTime(payload, completed.completedAt)) {
    const message = 'it is issued long before the completion of its job, or long after it';
    faults.push({ kind: 'receipt_time_wrong', message });
  }
  if (faults.length === 0 && !isPayloadOf(job, payload)) {
    const message = 'the receipt contradicts the events of its job';
    faults.push({ kind: 'receipt_content_mismatch', message });
  }
  return faults;
}

/** For an operator who has reported a compromise and sees the consequences. */
export const COMPROMISED =
  'the key is compromised, so the receipt does not verify, even if the relay signed it; every later audit reports it again';

function isCompromised(
  keys: readonly KeyRecord[],
  keyId: string | null,
  payload: ReceiptPayload | null,
): boolean {
  const since = keys.find((key) => key.keyId === keyId)?.compromisedAt ?? null;
  return since !== null && payload !== null && payload.iat >= since;
}

/** Checks that need no payload. */
const BARE: ReadonlySet<CheckName> = new Set(['signature_valid', 'payload_version_supported']);

const isEventOf = (
  { decisionId, keyId, signedAt }: ReceiptSigned,
  payload: ReceiptPayload,
  kid: string | null,
): boolean =>
  decisionId === payload.decisionId &&
  keyId === kid &&
  Math.floor(Date.parse(signedAt) / 1000) === payload.iat;

/** A receipt is signed when its job is completed, by the same process. */
const MAX_SECONDS_AFTER = 300;

function isInTime({ iat }: ReceiptPayload, completedAt: string): boolean {
  const completed = Math.floor(Date.parse(completedAt) / 1000);
  return iat >= completed - CLOCK_TOLERANCE_MS / 1000 && iat <= completed + MAX_SECONDS_AFTER;
}

function isPayloadOf(job: Omit<CompletedJob, 'receipt'>, payload: ReceiptPayload): boolean {
  const { receiptId, iat, stream } = payload;
  const log = logOf(payload);
  const expected: { readonly [name: string]: Json } = receiptPayload(job, { receiptId, iat, stream, log });
  return sameJson(expected, payload);
}
