// The one receipt verifier of the API, the command line, the audit and the browser page. It makes every check, also after
// one has failed, so that a reader sees all that is wrong. The signature primitive is an argument.
import { fromBase64url, utf8 } from '#src/domain/encoding.ts';
import { decodeEvent } from '#src/domain/event-codec.ts';
import { type KeyRecord, keyValidAt, type Primitives } from '#src/domain/signing-keys/keys.ts';
import { hasLoneSurrogate, type Json, sameJson } from '../canonical-json.ts';
import type { PaymentFacts } from '../event-fields.ts';
import { TRANSPARENCY } from '../transparency/checkpoint.ts';
import { verifyTlogProof } from '../transparency/tlog-proof.ts';
import { receiptLeafData } from '../transparency/tree.ts';
import type { WitnessPolicy } from '../transparency/witness-policy.ts';
import {
  type ChainedEvent,
  eventChain,
  logOf,
  type ParsedJws,
  RECEIPT_TYPE,
  RECEIPT_VERSIONS,
  type ReadReceipt,
  type ReceiptPayload,
  readReceipt,
  receiptAttempt,
  runOf,
} from './payload.ts';
import type { Check, ComparedCheck, LogCheck, VerificationReport } from './report.ts';
import { witnessCheck } from './witness-check.ts';

/** The job's facts from sources other than the receipt. */
export type JobFacts = {
  readonly jobId: string;
  readonly receiptId: string | null;
  readonly status: string;
  readonly responseStatus: number | null;
  readonly method: string;
  readonly attempts: number;
  readonly decisionId: string | null;
  /** Commitment of the target URL. */
  readonly targetCommitment: string;
  readonly payment: PaymentFacts | null;
  /** The job's recorded events up to JobCompleted, in order. */
  readonly events: readonly ChainedEvent[];
};

export type VerifyFacts = {
  readonly jws: string;
  /** The ids under which the receipt was found; null for a bare JWS. */
  readonly receiptId: string | null;
  readonly jobId: string | null;
  readonly keys: readonly KeyRecord[];
  /** null: the job is not available (no longer retained, or an offline check); only the receipt's own checks run. */
  readonly job: JobFacts | null;
  /** null: no check of the transparency log: there is none, or it was not queried. */
  readonly log: LogFacts | null;
};

/** `read`: the facts' JWS, if the caller has read it already. */
export async function verifySignedReceipt(
  facts: VerifyFacts,
  primitives: Primitives,
  { jws, payload }: ReadReceipt = readReceipt(facts.jws),
): Promise<VerificationReport> {
  const keyId = typeof jws?.header.kid === 'string' ? jws.header.kid : null;
  const key = facts.keys.find((candidate) => candidate.keyId === keyId) ?? null;
  const signatureVerified = await signatureValid(jws, key, primitives);
  const checks: Check[] = [
    same('receipt_present', facts.receiptId ?? payload?.receiptId ?? null, payload?.receiptId ?? null),
    { name: 'signature_valid', ok: signatureVerified },
    keyCheck(key, payload),
    versionCheck(jws, payload),
    same('payload_job_id', facts.jobId ?? payload?.jobId ?? null, payload?.jobId ?? null),
    { name: 'request_commitment_present', ok: isWhole(payload?.request._sd ?? []) },
    responseCheck(payload),
  ];
  if (facts.job !== null) checks.push(...jobChecks(facts.job, payload));
  if (facts.log !== null)
    checks.push(...(await logChecks(facts.jws, payload, facts.log, facts.keys, primitives)));
  return {
    ok: checks.every((check) => check.ok),
    receiptId: payload?.receiptId ?? facts.receiptId,
    jobId: payload?.jobId ?? facts.jobId,
    keyId,
    signatureVerified,
    checks,
  };
}

/** Compares two values; ok if they are equal, not null, and no text with a lone surrogate (of a forged payload). */
function same(name: ComparedCheck['name'], expected: Json, receipt: Json): ComparedCheck {
  const held = receipt !== null && !(typeof receipt === 'string' && hasLoneSurrogate(receipt));
  return { name, ok: held && sameJson(expected, receipt), details: { expected, receipt } };
}

/** null if the events were edited and have no canonical JSON any more: one check fails, the others still run. */
export function chainOf(events: readonly ChainedEvent[]): string | null {
  try {
    return eventChain(events);
  } catch (error) {
    if (error instanceof TypeError || error instanceof RangeError) return null;
    throw error;
  }
}

async function signatureValid(
  jws: ParsedJws | null,
  key: KeyRecord | null,
  primitives: Primitives,
): Promise<boolean> {
  if (jws === null || key === null) return false;
  const { alg, typ } = jws.header;
  // An unknown critical extension must not be ignored (RFC 7515 §4.1.11). A key in the header is never used.
  if (alg !== 'EdDSA' || typ !== RECEIPT_TYPE || 'crit' in jws.header) return false;
  const publicKey = fromBase64url(key.x);
  if (publicKey?.length !== 32 || jws.signature.length !== 64) return false;
  return primitives.ed25519Verify(publicKey, utf8(jws.signingInput), jws.signature);
}

function keyCheck(key: KeyRecord | null, payload: ReceiptPayload | null): Check {
  const name = 'key_valid_at_issue';
  if (key === null || payload === null)
    return { name, ok: false, details: { iat: payload?.iat ?? null, key: null } };
  const { notBefore, notAfter, compromisedAt } = key;
  return {
    name,
    ok: keyValidAt(key, payload.iat),
    details: { iat: payload.iat, notBefore, notAfter, compromisedAt },
  };
}

function versionCheck(jws: ParsedJws | null, payload: ReceiptPayload | null): Check {
  const claimed =
    typeof jws?.payload === 'object' && jws.payload !== null && 'v' in jws.payload ? jws.payload.v : null;
  const shown = typeof claimed === 'number' ? claimed : null;
  return {
    name: 'payload_version_supported',
    ok: payload !== null,
    details: { supported: RECEIPT_VERSIONS, receipt: shown },
  };
}

/** URL, origin, header names, body, and the idempotency key if any: each once, so that none has two values. */
const isWhole = (commitments: readonly string[]): boolean =>
  (commitments.length === 4 || commitments.length === 5) &&
  commitments.every((one, at) => commitments.indexOf(one) === at);

/** One response commitment if there was a response, none otherwise. */
function responseCheck(payload: ReceiptPayload | null): Check {
  const name = 'response_commitment_present';
  if (payload === null) return { name, ok: false };
  const expected = payload.outcome.responseBytes === null ? 0 : 1;
  return same(name, expected, payload.outcome._sd.length);
}

function jobChecks(job: JobFacts, payload: ReceiptPayload | null): Check[] {
  const committed = payload?.request._sd.includes(job.targetCommitment) ?? false;
  const last = job.events.at(-1);
  const recorded = {
    id: last?.stream ?? null,
    revision: last === undefined ? null : String(last.revision),
    chain: chainOf(job.events),
  };
  return [
    { name: 'job_present', ok: true },
    same('receipt_links_job', job.jobId, payload?.jobId ?? null),
    same('job_links_receipt', job.receiptId, payload?.receiptId ?? null),
    same(
      'status_matches',
      { status: job.status, responseStatus: job.responseStatus },
      payload && { status: payload.outcome.status, responseStatus: payload.outcome.responseStatus },
    ),
    same('method_matches', job.method, payload?.request.method ?? null),
    {
      name: 'target_matches',
      ok: committed,
      details: { expected: job.targetCommitment, receipt: payload?.request._sd ?? null },
    },
    attemptsCheck(job, payload),
    matches('decision_matches', job.decisionId, payload?.decisionId ?? null, payload),
    matches('payment_matches', job.payment, payload?.payment ?? null, payload),
    ...scheduleCheck(job, payload),
    same('event_chain_matches', recorded, payload?.stream ?? null),
  ];
}

/** The number of attempts, and each attempt as its event recorded it. If only the content differs, shows both lists. */
function attemptsCheck(job: JobFacts, payload: ReceiptPayload | null): Check {
  const recorded: ReceiptPayload['attempts'] = [];
  for (const stored of job.events) {
    const event = stored.type === 'AttemptMade' ? decodeEvent(stored) : null;
    if (event?.type === 'AttemptMade') recorded.push(receiptAttempt(event.data));
  }
  const counted = same('attempts_match', job.attempts, payload?.attempts.length ?? null);
  if (!counted.ok || payload === null || sameJson(recorded, payload.attempts)) return counted;
  return same('attempts_match', recorded, payload.attempts);
}

/** Only where the job or the receipt is of a run of a schedule. */
function scheduleCheck({ events }: JobFacts, payload: ReceiptPayload | null): readonly Check[] {
  const recorded = (events[0]?.data.schedule ?? null) as Json;
  const stated = payload === null ? null : runOf(payload);
  if (recorded === null && stated === null) return [];
  return [matches('schedule_matches', recorded, stated, payload)];
}

/** As `same`, but null is a value too (no decision, no payment). */
function matches(
  name: ComparedCheck['name'],
  expected: Json,
  receipt: Json,
  payload: ReceiptPayload | null,
): ComparedCheck {
  return { name, ok: payload !== null && sameJson(expected, receipt), details: { expected, receipt } };
}

/** Of the transparency log, and of its witnesses if there is a policy. */
async function logChecks(
  jws: string,
  payload: ReceiptPayload | null,
  log: LogFacts,
  keys: readonly KeyRecord[],
  primitives: Primitives,
): Promise<Check[]> {
  const logged = await logCheck(jws, payload, log, keys, primitives);
  const { policy = null, ...facts } = log;
  if (policy === null) return [logged];
  if (payload === null) return [logged, { name: 'receipt_witnessed', ok: false }];
  return [logged, await witnessCheck({ ...facts, iat: payload.iat, policy, logged }, primitives)];
}

export type LogFacts = {
  /** Text of the proof file (C2SP tlog-proof); null if the log gave none. */
  readonly proof: string | null;
  /** Unix seconds. */
  readonly now: number;
  /** Which witnesses have to have cosigned; absent or null: none is checked. */
  readonly policy?: WitnessPolicy | null;
  /** The policy is the log's own: a missing quorum is pending until it is due. Absent: a reader's. */
  readonly isOwnPolicy?: boolean;
};

/**
 * A receipt is pending for at most a day, whatever it promises, and not at all if its date is more than a day ahead.
 * Otherwise a relay that never logs a receipt could keep it pending without limit.
 */
export const MAX_PENDING_SECONDS = 86_400;

/**
 * Ok with `details.pending` until `details.dueBy` (Unix seconds): the time that the receipt promises, or the default if it
 * promises none. False if the proof does not hold, if the receipt is late, or if its date is far ahead of now (`problem`:
 * `future`).
 */
export async function logCheck(
  jws: string,
  payload: ReceiptPayload | null,
  log: LogFacts,
  keys: readonly KeyRecord[],
  primitives: Primitives,
): Promise<LogCheck> {
  const name = 'receipt_logged';
  if (payload === null) return { name, ok: false };
  if (log.proof === null) {
    const { mmdSeconds } = logOf(payload) ?? TRANSPARENCY;
    const dueBy = payload.iat + Math.min(mmdSeconds, MAX_PENDING_SECONDS);
    if (payload.iat > log.now + MAX_PENDING_SECONDS)
      return { name, ok: false, details: { pending: false, dueBy, problem: 'future' } };
    const pending = log.now <= dueBy;
    return { name, ok: pending, details: { pending, dueBy } };
  }
  const leafData = receiptLeafData(jws);
  const expected = { leafData, origin: logOf(payload)?.origin ?? null };
  const verdict = await verifyTlogProof(log.proof, expected, keys, primitives);
  if (!verdict.ok) return { name, ok: false, details: { pending: false, problem: verdict.problem } };
  const { origin, size } = verdict.checkpoint;
  return { name, ok: true, details: { pending: false, origin, index: verdict.index, size } };
}
