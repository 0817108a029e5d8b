// What a file with a receipt holds: a bare JWS, the answer of GET /api/receipts/{id}, or an execution response.
// It finds the JWS, and tells where the readable text around it says something else than what was signed.
import { canonicalJson, type Json } from '../domain/canonical-json.ts';
import {
  isReceiptPayload,
  parseJws,
  type ReceiptPayload,
  shownSignature,
} from '../domain/receipt/payload.ts';
import { CannotRun } from './exit.ts';

export type ReceiptDocument = {
  readonly kind: 'jws' | 'receipt' | 'execution';
  readonly jws: string;
  /** As the text around the JWS names them. */
  readonly receiptId: string | null;
  readonly jobId: string | null;
  readonly text: JsonMap;
};

/** A statement of the text around the JWS, and what the signed receipt says instead. */
export type Difference = { readonly field: string; readonly shown: unknown; readonly signed: Json };

type JsonMap = { readonly [name: string]: unknown };

/** `name`: of the source, for messages. Throws `CannotRun` where there is no receipt in it. */
export function readReceiptDocument(text: string, name: string): ReceiptDocument {
  const trimmed = text.trim();
  if (/^[^\s."{}]+\.[^\s.]*\.[^\s.]*$/.test(trimmed)) {
    return { kind: 'jws', jws: trimmed, receiptId: null, jobId: null, text: {} };
  }
  const value = parsed(trimmed, name);
  const { jws, receipt, job, error } = value;
  if (typeof jws === 'string') {
    return { kind: 'receipt', jws, receiptId: textOrNull(value.id), jobId: null, text: value };
  }
  if (isMap(receipt) && typeof receipt.jws === 'string') {
    const jobId = isMap(job) ? textOrNull(job.id) : null;
    return { kind: 'execution', jws: receipt.jws, receiptId: textOrNull(receipt.id), jobId, text: value };
  }
  const problem = isMap(error)
    ? `holds an error answer (${String(error.code)})`
    : 'holds JSON without a receipt';
  throw new CannotRun(`${name} ${problem}: ${FORMS}`);
}

const FORMS = 'it must be the answer of GET /api/receipts/{id}, an execution response, or a bare JWS';

function parsed(text: string, name: string): JsonMap {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw new CannotRun(`${name} is neither JSON nor a JWS: ${FORMS}`);
  }
  if (!isMap(value)) throw new CannotRun(`${name} holds JSON without a receipt: ${FORMS}`);
  return value;
}

/**
 * Everything in the document that repeats a signed fact and differs from it. None for a JWS without a readable
 * payload: then the verifier has said what is wrong.
 */
export function differences({ kind, jws, text }: ReceiptDocument): readonly Difference[] {
  const read = parseJws(jws);
  if (read === null || !isReceiptPayload(read.payload) || kind === 'jws') return [];
  const keyId = typeof read.header.kid === 'string' ? read.header.kid : null;
  const signed =
    kind === 'receipt' ? receiptCopy(read.payload, keyId, jws) : executionCopy(read.payload, keyId, jws);
  return compare('', text, signed);
}

function receiptCopy(payload: ReceiptPayload, keyId: string | null, jws: string): Json {
  return { id: payload.receiptId, keyId, signature: shownSignature(jws), payload: { ...payload } as Json };
}

function executionCopy(payload: ReceiptPayload, keyId: string | null, jws: string): Json {
  const { outcome, payment } = payload;
  return {
    mode: payload.mode,
    job: {
      id: payload.jobId,
      status: outcome.status,
      attempts: payload.attempts.length,
      decisionId: payload.decisionId,
      responseStatus: outcome.responseStatus,
      errorCategory: outcome.errorCategory,
    },
    receipt: { id: payload.receiptId, keyId, signature: shownSignature(jws) },
    payment: payment as Json,
  };
}

/** Objects member by member, where the text has the member at all; the rest by its canonical form. */
function compare(field: string, text: unknown, signed: Json): Difference[] {
  if (text === undefined) return [];
  if (isMap(text) && isMap(signed)) {
    const names = field.startsWith('payload') ? Object.keys({ ...signed, ...text }) : Object.keys(signed);
    return names.flatMap((name) =>
      compare(
        field === '' ? name : `${field}.${name}`,
        text[name],
        (signed[name] as Json | undefined) ?? null,
      ),
    );
  }
  const written = canonical(text);
  if (written === canonicalJson(signed)) return [];
  return [{ field, shown: written === null ? UNWRITABLE : text, signed }];
}

const UNWRITABLE = '(something that no JSON text of a receipt can hold)';

/** null: half a surrogate pair, or nested so deep that it cannot be walked; nothing that was ever signed. */
function canonical(value: unknown): string | null {
  try {
    return canonicalJson(value as Json);
  } catch {
    return null;
  }
}

const isMap = (value: unknown): value is JsonMap =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const textOrNull = (value: unknown): string | null => (typeof value === 'string' ? value : null);
