// Checks whether an event can follow the events before it in its job's stream, with the commands that write such events;
// and whether a job's receipt verifies and states exactly what the job's events give.
import type { KeyRecord, Primitives } from '#src/domain/signing-keys/keys.ts';
import { sameJson } from '../canonical-json.ts';
import type { JobStarted, ReceiptSigned } from '../events/job.ts';
import type { DomainEvent, Events, JobEvent } from '../events.ts';
import { completeJob, type Impossible, recordAttempt } from '../job/commands.ts';
import type { CompletedJob, Job } from '../job/state.ts';
import { type ChainedEvent, logOf, type ReadReceipt, receiptPayload } from '../receipt/payload.ts';
import type { CheckName } from '../receipt/report.ts';
import { chainOf, verifyReceipt } from '../receipt/verify.ts';
import { type Fault, type FindingKind, fault } from './finding.ts';

export function jobFaults(job: Job, event: JobEvent): readonly Fault[] {
  switch (event.type) {
    case 'JobStarted':
      return job.status === 'absent' ? startFaults(event.data) : [impossible('the job has started already')];
    case 'AttemptMade': {
      const { v: _, jobId: __, outcome: ___, ...facts } = event.data;
      return commandFaults(recordAttempt(facts, job), event.data);
    }
    case 'JobCompleted': {
      const { responseBytes, truncated, responseCommitment, completedAt } = event.data;
      const expected = completeJob({ responseBytes, truncated, responseCommitment }, completedAt, job);
      // Recovery closes the jobs of processes that ended.
      return commandFaults(expected, { ...event.data, closedBy: 'owner' });
    }
    case 'ReceiptSigned':
      if (job.status !== 'completed') {
        return [fault('receipt_without_job', 'a receipt precedes the completion of its job')];
      }
      return job.receipt === null ? [] : [RECEIPT_REPEATED];
    default:
      return event satisfies never;
  }
}

export const RECEIPT_REPEATED: Fault = fault('receipt_repeated', 'the job has a receipt already');

const impossible = (message: string): Fault => fault('job_event_impossible', message);

function startFaults({ mode, route, payment, decisionId }: JobStarted): readonly Fault[] {
  if ((mode === 'x402') !== (payment !== null))
    return [impossible(`a job of mode ${mode} ${payment ? 'has' : 'has no'} payment`)];
  if ((route === 'execute/guided-webhook') !== (decisionId !== null))
    return [impossible('a guided job has a decision, and no other has')];
  return [];
}

const WHY: Readonly<Record<Impossible['why'], string>> = {
  job_not_running: 'the job does not run here',
  attempt_out_of_order: 'attempts do not count 1, 2, 3',
  no_attempt_left: 'no attempt was due, or more are announced than are allowed',
  attempt_pending: 'an attempt is still due',
};

/** `expected`: the event that the command would write. */
function commandFaults(
  expected: Events<readonly [DomainEvent]> | Impossible,
  data: JobEvent['data'],
): readonly Fault[] {
  if (expected.kind === 'impossible') return [impossible(WHY[expected.why])];
  return sameJson(expected.events[0].data, data) ? [] : [impossible('it contradicts the events before it')];
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
  if (payload === null) return [fault('receipt_unreadable', 'this release cannot read the receipt')];
  const { jws, receiptId } = signed;
  const report = await verifyReceipt(
    { jws, receiptId: null, jobId: null, keys, job: null, log: null },
    primitives,
    read,
  );
  const faults: Fault[] = report.checks.flatMap(({ name, ok }) => {
    const kind = RECEIPT_CHECKS[name];
    return ok || kind === undefined ? [] : [fault(kind, `the check ${name} of the receipt fails`)];
  });
  if (
    signed.decisionId !== payload.decisionId ||
    signed.keyId !== report.keyId ||
    Math.floor(Date.parse(signed.signedAt) / 1000) !== payload.iat
  ) {
    const message = 'decision, key or time of the event are not those of its receipt';
    faults.push(fault('receipt_event_mismatch', message));
  }
  const last = events.at(-1);
  const stream = { id: last?.stream ?? '', revision: String(last?.revision), chain: chainOf(events) ?? '' };
  const facts = { receiptId, iat: payload.iat, stream, log: logOf(payload) };
  const expected: Readonly<Record<string, unknown>> = receiptPayload(job, facts);
  const stated: Readonly<Record<string, unknown>> = payload;
  const differing = Object.keys(expected).filter((name) => !sameJson(expected[name], stated[name]));
  if (differing.includes('stream')) {
    const message = 'the recorded history of the job is not the one that was signed';
    faults.push(fault('receipt_chain_mismatch', message));
  }
  const content = differing.filter((name) => name !== 'stream').join(', ');
  if (content !== '')
    faults.push(
      fault('receipt_content_mismatch', `the receipt contradicts the events of its job in ${content}`),
    );
  return faults;
}
