// Whether a job's receipt says what its events say, and whether its signature holds: the one verifier's checks, and that
// the payload is, to the last field, the one that the events make.

import { CHECK_WORDS } from '#src/domain/receipt/check-labels.ts';
import type { KeyRecord } from '#src/domain/signing-keys/keys.ts';
import type { Json } from '../canonical-json.ts';
import type { ReceiptSigned } from '../job/events.ts';
import type { CompletedJob } from '../job/state.ts';
import type { ChainedEvent } from '../receipt/chain.ts';
import { logOf, payloadOf, type ReceiptPayload, receiptPayload } from '../receipt/payload.ts';
import { type CheckName, type Primitives, verifyReceipt } from '../receipt/verify.ts';
import { JOB_SLACK_MS } from './clock-tolerance.ts';
import type { Fault } from './event-location.ts';
import { RECEIPT_FINDINGS } from './finding.ts';
import { same } from './same.ts';

export type ReceiptVerdict = {
  readonly faults: readonly Fault[];
  /** What was signed; null where it cannot be read. */
  readonly payload: ReceiptPayload | null;
};

/** `events`: the job's, as recorded, up to JobCompleted. `keys`: as announced before the receipt. */
export async function judgeJobReceipt(
  job: Omit<CompletedJob, 'receipt'>,
  events: readonly ChainedEvent[],
  signed: ReceiptSigned,
  keys: readonly KeyRecord[],
  primitives: Primitives,
): Promise<ReceiptVerdict> {
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
  const report = await verifyReceipt(asked, primitives);
  const payload = payloadOf(jws);
  const faults: Fault[] = [];
  for (const { name, ok } of report.checks) {
    const kind = RECEIPT_FINDINGS[name];
    // Of what cannot be read every comparison fails: that says nothing more.
    if (ok || faults.some((fault) => fault.kind === kind) || (payload === null && !BARE.has(name))) continue;
    const why =
      name === 'key_valid_at_issue' && isCompromised(keys, report.keyId, payload) ? `; ${COMPROMISED}` : '';
    faults.push({ kind, message: `not so (${name}): ${CHECK_WORDS[name]}${why}` });
  }
  if (payload === null) return { faults, payload };
  if (!isEventOf(signed, payload, report.keyId)) {
    const message = 'decision, key or time of the event are not those of its receipt';
    faults.push({ kind: 'receipt_event_mismatch', message });
  }
  if (!isInTime(payload, completed.completedAt)) {
    const message = 'it is issued long before the completion of its job, or long after it';
    faults.push({ kind: 'receipt_time_wrong', message });
  }
  if (faults.length === 0 && !isPayloadOf(job, payload)) {
    const message = 'the receipt says something else than the events of its job';
    faults.push({ kind: 'receipt_content_mismatch', message });
  }
  return { faults, payload };
}

/** Said to an operator who did nothing but tell of the compromise. */
export const COMPROMISED =
  'the key is compromised, so the receipt does not verify, whoever signed it; every later audit says the same';

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

/** Signed as the job is closed, by the same process. */
const MOST_SECONDS_AFTER = 300;

function isInTime({ iat }: ReceiptPayload, completedAt: string): boolean {
  const completed = Math.floor(Date.parse(completedAt) / 1000);
  return iat >= completed - JOB_SLACK_MS / 1000 && iat <= completed + MOST_SECONDS_AFTER;
}

function isPayloadOf(job: Omit<CompletedJob, 'receipt'>, payload: ReceiptPayload): boolean {
  const { receiptId, iat, stream } = payload;
  const log = logOf(payload);
  const expected: { readonly [name: string]: Json } = receiptPayload(job, { receiptId, iat, stream, log });
  return same(expected, payload);
}
