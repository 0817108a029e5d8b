// What a receipt's signature covers: one payload schema per version, the payload of a job, and the chain of its events.
import { type Static, Type } from '@sinclair/typebox';
import { concatBytes, fromBase64url, fromUtf8, sha256, toBase64url, utf8 } from '#src/domain/encoding.ts';
import type { RecordedEvent } from '#src/domain/event-codec.ts';
import { canonicalJson, type Json, parsedJson } from '../canonical-json.ts';
import {
  Commitment,
  ErrorCategory,
  HttpStatus,
  Method,
  Mode,
  Nullable,
  oneOf,
  PaymentFacts,
  Phase,
  ScheduledRun,
  Sent,
  strict,
  Truncated,
} from '../event-fields.ts';
import type { AttemptMade } from '../events/job.ts';
import type { CompletedJob } from '../job/state.ts';
import { shapeCheck } from '../shape-check.ts';

const Commitments = Type.Array(Commitment);
const Outcome = oneOf('succeeded', 'failed');

const outcome = {
  status: Outcome,
  responseStatus: Nullable(HttpStatus),
  errorCategory: Nullable(ErrorCategory),
  responseBytes: Nullable(Type.Integer({ minimum: 0 })),
};

const members = {
  receiptId: Type.String(),
  jobId: Type.String(),
  decisionId: Nullable(Type.String()),
  decisionHash: Nullable(Type.String()),
  /** Seconds since the Unix epoch (RFC 7519 NumericDate). */
  iat: Type.Integer({ minimum: 0 }),
  mode: Mode,
  payment: Nullable(PaymentFacts),
  request: Type.Object({ method: Method, _sd: Commitments }, strict),
  attempts: Type.Array(
    Type.Object(
      {
        n: Type.Integer({ minimum: 1, maximum: 3 }),
        startedAt: Type.String(),
        endedAt: Type.String(),
        phase: Phase,
        sent: Sent,
        outcome: Outcome,
        status: Nullable(HttpStatus),
        errorCategory: Nullable(ErrorCategory),
        tlsVersion: Nullable(Type.String()),
        /** Present and true if EGRESS_ALLOW_CIDRS allowed a non-public address. */
        exempted: Type.Optional(Type.Literal(true)),
        _sd: Commitments,
      },
      strict,
    ),
  ),
  outcome: Type.Object({ ...outcome, truncated: Type.Boolean(), _sd: Commitments }, strict),
  stream: Type.Object(
    {
      id: Type.String(),
      /** Revision of JobCompleted, decimal. */
      revision: Type.String({ pattern: '^\\d+$' }),
      /** base64url of 32 bytes, see `eventChain`. */
      chain: Type.String({ pattern: '^[A-Za-z0-9_-]{43}$' }),
    },
    strict,
  ),
};

/** The transparency log that the receipt will be in, and within how many seconds of `iat`. */
export const ReceiptLog = Type.Object(
  { origin: Type.String({ minLength: 1 }), mmdSeconds: Type.Integer({ minimum: 1 }) },
  strict,
);
export type ReceiptLog = Static<typeof ReceiptLog>;

/**
 * Version 1 names no transparency log; version 2 always does. Version 3 states that it is unknown whether the response is
 * complete. Version 4 states of which run of a schedule it is. A receipt has the lowest version that can state its facts. A released version never changes.
 */
export const ReceiptPayload = Type.Union([
  Type.Object({ v: Type.Literal(1), ...members }, strict),
  Type.Object({ v: Type.Literal(2), ...members, log: ReceiptLog }, strict),
  Type.Object(
    {
      v: Type.Literal(3),
      ...members,
      outcome: Type.Object({ ...outcome, truncated: Type.Literal('unknown'), _sd: Commitments }, strict),
      log: Nullable(ReceiptLog),
    },
    strict,
  ),
  Type.Object(
    {
      v: Type.Literal(4),
      ...members,
      outcome: Type.Object({ ...outcome, truncated: Truncated, _sd: Commitments }, strict),
      log: Nullable(ReceiptLog),
      schedule: Nullable(ScheduledRun),
    },
    strict,
  ),
]);
export type ReceiptPayload = Static<typeof ReceiptPayload>;
export const RECEIPT_VERSIONS = [1, 2, 3, 4] as const;

export const isReceiptPayload = shapeCheck(ReceiptPayload);

/** The transparency log that the receipt names; null if it names none. */
export const logOf = (payload: ReceiptPayload): ReceiptLog | null => ('log' in payload ? payload.log : null);

/** The run of a schedule that the receipt is of; null: it is of none. */
export const runOf = (payload: ReceiptPayload): ScheduledRun | null =>
  'schedule' in payload ? payload.schedule : null;

export type ReceiptFacts = {
  readonly receiptId: string;
  readonly iat: number;
  readonly stream: ReceiptPayload['stream'];
  readonly log: ReceiptLog | null;
};

export function receiptPayload(
  job: Pick<CompletedJob, 'started' | 'attempts' | 'completed'>,
  facts: ReceiptFacts,
): ReceiptPayload {
  const { started, attempts, completed } = job;
  const payload = {
    receiptId: facts.receiptId,
    jobId: started.jobId,
    decisionId: started.decisionId,
    decisionHash: started.decisionHash,
    iat: facts.iat,
    mode: started.mode,
    payment: started.payment,
    request: { method: started.method, _sd: present(Object.values(started.commitments)).sort() },
    attempts: attempts.map(receiptAttempt),
    outcome: {
      status: completed.status,
      responseStatus: completed.responseStatus,
      errorCategory: completed.errorCategory,
      responseBytes: completed.responseBytes,
      _sd: present([completed.responseCommitment]),
    },
    stream: facts.stream,
  };
  const { log } = facts;
  const { truncated } = completed;
  const { schedule } = started;
  if (schedule !== null)
    return { v: 4, ...payload, outcome: { ...payload.outcome, truncated }, log, schedule };
  if (truncated === 'unknown') return { v: 3, ...payload, outcome: { ...payload.outcome, truncated }, log };
  const complete = { ...payload, outcome: { ...payload.outcome, truncated } };
  return log === null ? { v: 1, ...complete } : { v: 2, ...complete, log };
}

/** One attempt as the receipt states it; the verifier compares it with the same projection of the recorded event. */
export function receiptAttempt(attempt: AttemptMade): ReceiptPayload['attempts'][number] {
  return {
    n: attempt.number,
    startedAt: attempt.startedAt,
    endedAt: attempt.endedAt,
    phase: attempt.phase,
    sent: attempt.sent,
    outcome: attempt.outcome,
    status: attempt.status,
    errorCategory: attempt.errorCategory,
    tlsVersion: attempt.tlsVersion,
    ...(attempt.exempted ? { exempted: true as const } : {}),
    _sd: present([attempt.leafCommitment, attempt.addressCommitment]).sort(),
  };
}

const present = (values: readonly (string | null)[]): string[] => values.filter((value) => value !== null);

/** `ed25519:` and the JWS's third part: how a receipt's signature is shown beside the JWS. */
export const shownSignature = (jws: string): string => `ed25519:${jws.slice(jws.lastIndexOf('.') + 1)}`;

export const RECEIPT_TYPE = 'relay-receipt+jws';

/** The JWS signing input (RFC 7515 §5.1): its ASCII bytes are what is signed. */
export function signingInput(payload: ReceiptPayload, keyId: string): string {
  const header = canonicalJson({ alg: 'EdDSA', kid: keyId, typ: RECEIPT_TYPE });
  return `${toBase64url(utf8(header))}.${toBase64url(utf8(canonicalJson(payload as Json)))}`;
}

export function compactJws(input: string, signature: Uint8Array): string {
  return `${input}.${toBase64url(signature)}`;
}

export type ParsedJws = {
  readonly header: { readonly alg?: unknown; readonly kid?: unknown; readonly typ?: unknown };
  readonly payload: unknown;
  readonly signingInput: string;
  readonly signature: Uint8Array;
};

/** The parts of a compact JWS; null for anything else. Does not verify the signature. */
export function parseJws(jws: string): ParsedJws | null {
  const parts = jws.split('.');
  const [head, body, tail] = parts;
  if (parts.length !== 3 || head === undefined || body === undefined || tail === undefined) return null;
  const header = jsonPart(head);
  const payload = jsonPart(body, true);
  const signature = fromBase64url(tail);
  if (signature === null || payload === undefined || header === null || typeof header !== 'object')
    return null;
  return { header, payload, signingInput: jws.slice(0, -tail.length - 1), signature };
}

/** `oneForm`: null for JSON with a repeated name, blanks or unusual escapes, which two parsers could read differently. */
function jsonPart(part: string, oneForm = false): unknown {
  const bytes = fromBase64url(part);
  const text = bytes === null ? null : fromUtf8(bytes);
  if (text === null) return undefined;
  const value = parsedJson(text);
  return value !== undefined && oneForm && JSON.stringify(value) !== text ? null : value;
}

/** `jws` null: the text is none. `payload` null: not readable, or of an unknown version. */
export type ReadReceipt = { readonly jws: ParsedJws | null; readonly payload: ReceiptPayload | null };

/** Reads a compact JWS. Does not verify the signature. */
export function readReceipt(text: string): ReadReceipt {
  const jws = parseJws(text);
  return { jws, payload: isReceiptPayload(jws?.payload) ? jws.payload : null };
}

export const payloadOf = (jws: string): ReceiptPayload | null => readReceipt(jws).payload;

export type ChainedEvent = Pick<RecordedEvent, 'stream' | 'revision' | 'type' | 'id' | 'data'>;

/**
 * chain₀ = 32 zero bytes; chainₙ = SHA-256(chainₙ₋₁ ‖ JCS{stream, revision, type, id, data}), over events as they were
 * recorded, revision as a decimal string. Metadata, position and time of storage are left out. base64url.
 */
export function eventChain(events: readonly ChainedEvent[]): string {
  let link: Uint8Array = new Uint8Array(32);
  for (const { stream, revision, type, id, data } of events) {
    const json = canonicalJson({ stream, revision: String(revision), type, id, data });
    link = sha256(concatBytes(link, utf8(json)));
  }
  return toBase64url(link);
}
