// Checks whether an event can follow the events before it in its job's stream, with the commands that write such events;
// and whether a job's receipt verifies and states exactly what the job's events give.
import type { KeyRecord, Primitives } from '#src/domain/signing-keys/keys.ts';
import { sameJson } from '../canonical-json.ts';
import type { JobStarted, ReceiptSigned } from '../events/job.ts';
import type { DomainEvent, Events, JobEvent } from '../events.ts';
import { completeJob, type Impossible, recordAttempt } from '../job/commands.ts';
import { type CompletedJob, type Job, mayAttempt } from '../job/state.ts';
import { type ChainedEvent, logOf, type ReadReceipt, receiptPayload } from '../receipt/payload.ts';
import type { CheckName } from '../receipt/report.ts';
import { chainOf, verifySignedReceipt } from '../receipt/verify.ts';
import { type Fault, type FindingKind, fault } from './finding.ts';

export function jobFaults(job: Job, event: JobEvent): readonly Fault[] {
  switch (event.type) {
    case 'JobStarted':
      return job.status === 'absent'
        ? startFaults(event.data)
        : [impossible(`Job ${event.data.jobId} has already started.`)];
    case 'AttemptMade': {
      const { v: _, jobId: __, outcome: ___, ...facts } = event.data;
      const { jobId, number } = event.data;
      return commandFaults(recordAttempt(facts, job), event.data, job, `Attempt ${number} of job ${jobId}`);
    }
    case 'JobCompleted': {
      const { responseBytes, truncated, responseCommitment, completedAt } = event.data;
      const expected = completeJob({ responseBytes, truncated, responseCommitment }, completedAt, job);
      // Recovery closes the jobs of processes that ended.
      const subject = `The completion of job ${event.data.jobId}`;
      return commandFaults(expected, { ...event.data, closedBy: 'owner' }, job, subject);
    }
    case 'ReceiptSigned':
      if (job.status !== 'completed') {
        const { jobId, receiptId } = event.data;
        const message = `Receipt ${receiptId} precedes the completion of its job ${jobId}.`;
        return [fault('receipt_without_job', message)];
      }
      return job.receipt === null ? [] : [receiptRepeated(event.data)];
    default:
      return event satisfies never;
  }
}

export const receiptRepeated = ({ jobId, receiptId }: ReceiptSigned): Fault =>
  fault('receipt_repeated', `Job ${jobId} has a receipt before receipt ${receiptId}.`);

const impossible = (message: string): Fault => fault('job_event_impossible', message);

function startFaults({ jobId, mode, route, payment, decisionId }: JobStarted): readonly Fault[] {
  if ((mode === 'x402') !== (payment !== null))
    return [impossible(`Job ${jobId} is of mode ${mode} and has ${payment ? 'a' : 'no'} payment.`)];
  if ((route === 'execute/guided-webhook') !== (decisionId !== null))
    return [impossible(`Job ${jobId} is of ${route} and has ${decisionId === null ? 'no' : 'a'} decision.`)];
  return [];
}

/** `expected`: the event that the command would write. `subject`: what the event records. */
function commandFaults(
  expected: Events<readonly [DomainEvent]> | Impossible,
  data: JobEvent['data'],
  job: Job,
  subject: string,
): readonly Fault[] {
  if (expected.kind === 'impossible') return [impossible(reasonOf(expected, data.jobId, job, subject))];
  const event: Readonly<Record<string, unknown>> = expected.events[0].data;
  const stated: Readonly<Record<string, unknown>> = data;
  const differing = Object.keys(event).filter((name) => !sameJson(event[name], stated[name]));
  if (differing.length === 0) return [];
  return [impossible(`${subject} contradicts the events before it in ${differing.join(', ')}.`)];
}

function reasonOf({ why }: Impossible, jobId: string, job: Job, subject: string): string {
  const recorded = job.status === 'running' ? job.attempts.length : 0;
  switch (why) {
    case 'job_not_running':
      return `${subject} is recorded ${job.status === 'absent' ? 'before its start' : 'after its completion'}.`;
    case 'attempt_out_of_order':
      return `${subject} is recorded where attempt ${recorded + 1} was due.`;
    case 'no_attempt_left':
      return job.status === 'running' && mayAttempt(job)
        ? `${subject} announces another attempt, and no more are allowed.`
        : `${subject} is recorded and was never announced.`;
    case 'attempt_pending':
      return `Attempt ${recorded + 1} of job ${jobId} was announced and never recorded.`;
    default:
      return why satisfies never;
  }
}

/** The verifier's checks of the receipt alone; all others are made by comparing the whole payload. */
const RECEIPT_CHECKS: Partial<Readonly<Record<CheckName, FindingKind>>> = {
  signature_valid: 'receipt_signature_invalid',
  key_valid_at_issue: 'receipt_key_invalid',
  request_commitment_present: 'receipt_commitment_missing',
  response_commitment_present: 'receipt_commitment_missing',
};

/**
 * `read`: the receipt. `events`: the job's, as recorded, up to JobCompleted. `keys`: as announced before the receipt.
 */
export async function receiptFaults(
  job: Omit<CompletedJob, 'receipt'>,
  events: readonly ChainedEvent[],
  signed: ReceiptSigned,
  read: ReadReceipt,
  keys: readonly KeyRecord[],
  primitives: Primitives,
): Promise<readonly Fault[]> {
  const { payload } = read;
  const { jws, receiptId, jobId } = signed;
  if (payload === null)
    return [fault('receipt_unreadable', `This release cannot read receipt ${receiptId}.`)];
  const report = await verifySignedReceipt(
    { jws, receiptId: null, jobId: null, keys, job: null, log: null },
    primitives,
    read,
  );
  const faults: Fault[] = report.checks.flatMap(({ name, ok }) => {
    const kind = RECEIPT_CHECKS[name];
    return ok || kind === undefined ? [] : [fault(kind, `The check ${name} of receipt ${receiptId} fails.`)];
  });
  if (
    signed.decisionId !== payload.decisionId ||
    signed.keyId !== report.keyId ||
    Math.floor(Date.parse(signed.signedAt) / 1000) !== payload.iat
  ) {
    const message = `The event states another decision, key or time than its receipt ${receiptId}.`;
    faults.push(fault('receipt_event_mismatch', message));
  }
  const last = events.at(-1);
  const stream = { id: last?.stream ?? '', revision: String(last?.revision), chain: chainOf(events) ?? '' };
  const facts = { receiptId, iat: payload.iat, stream, log: logOf(payload) };
  const expected: Readonly<Record<string, unknown>> = receiptPayload(job, facts);
  const stated: Readonly<Record<string, unknown>> = payload;
  const differing = Object.keys(expected).filter((name) => !sameJson(expected[name], stated[name]));
  if (differing.includes('stream')) {
    const message = `The recorded history of job ${jobId} is not the one that receipt ${receiptId} was signed over.`;
    faults.push(fault('receipt_chain_mismatch', message));
  }
  const content = differing.filter((name) => name !== 'stream').join(', ');
  if (content !== '') {
    const message = `Receipt ${receiptId} contradicts the events of job ${jobId} in ${content}.`;
    faults.push(fault('receipt_content_mismatch', message));
  }
  return faults;
}
