// A document with a receipt: a bare JWS, the answer of GET /api/receipts/{id}, or an execution response. Finds the JWS,
// lists where the readable members around it differ from what was signed, and verifies it. Command line, pages and the
// importable verifier use it.

import { isObject } from '#src/lib/is-object.ts';
import { parsedJson, sameJson } from '../canonical-json.ts';
import type { Primitives } from '../signing-keys/keys.ts';
import { parseTlogProof } from '../transparency/tlog-proof.ts';
import { type OpenedDisclosure, openDisclosures } from './disclosures.ts';
import { type ReadReceipt, type ReceiptPayload, readReceipt, shownSignature } from './payload.ts';
import type { VerificationReport } from './report.ts';
import { type VerifyFacts, verifySignedReceipt } from './verify.ts';

export type ReceiptDocument = {
  readonly kind: 'jws' | 'receipt' | 'execution';
  readonly jws: string;
  /** As named in the text around the JWS. */
  readonly receiptId: string | null;
  readonly jobId: string | null;
  readonly text: JsonMap;
};

/** `problem`: what the text is instead; follows the text's name in a sentence. */
export type NoDocument = { readonly kind: null; readonly problem: string };

type JsonMap = { readonly [name: string]: unknown };

export const RECEIPT_FORMS =
  'it must be the answer of GET /api/receipts/{id}, an execution response, or a bare JWS';

export function readReceiptDocument(text: string): ReceiptDocument | NoDocument {
  const trimmed = text.trim();
  if (/^[^\s."{}]+\./.test(trimmed) && trimmed.split('.').length === 3 && !/\s/.test(trimmed)) {
    return { kind: 'jws', jws: trimmed, receiptId: null, jobId: null, text: {} };
  }
  const value = parsedJson(trimmed);
  return value === undefined ? none('is neither JSON nor a JWS') : receiptDocumentOf(value);
}

/** `value`: the parsed JSON. */
export function receiptDocumentOf(value: unknown): ReceiptDocument | NoDocument {
  if (!isObject(value)) return none('holds JSON without a receipt');
  const { jws, receipt, job } = value;
  if (typeof jws === 'string') {
    return { kind: 'receipt', jws, receiptId: textOrNull(value.id), jobId: null, text: value };
  }
  if (isObject(receipt) && typeof receipt.jws === 'string') {
    const jobId = isObject(job) ? textOrNull(job.id) : null;
    return { kind: 'execution', jws: receipt.jws, receiptId: textOrNull(receipt.id), jobId, text: value };
  }
  return none(errorIn(value) ?? 'holds JSON without a receipt');
}

/** null if the JSON is no error answer of the service. */
function errorIn(value: unknown): string | null {
  const error = isObject(value) ? value.error : null;
  return isObject(error) ? `holds an error answer (${textOrNull(error.code) ?? 'of no known kind'})` : null;
}

const none = (problem: string): NoDocument => ({ kind: null, problem });

/** Why the text is no proof file, to follow its name in a sentence; null if it is one. */
export function noProofIn(text: string): string | null {
  if (parseTlogProof(text) !== null) return null;
  const problem = errorIn(parsedJson(text)) ?? 'is no proof file';
  return `${problem}: it must be the answer of GET /log/proof/{receiptId}, available once the log contains the receipt`;
}

/** The disclosures of a JSON array, or of an execution response; null for anything else. */
export function disclosuresOf(value: unknown): readonly string[] | null {
  const list = isObject(value) ? value.disclosures : value;
  return Array.isArray(list) && list.every((text) => typeof text === 'string') ? list : null;
}

/** The members of the document that repeat a signed fact and differ from it. Empty if there is no readable payload. */
function differences({ kind, jws, text }: ReceiptDocument, read: ReadReceipt): readonly string[] {
  const { payload } = read;
  if (payload === null || kind === 'jws') return [];
  const { receiptId: id, jobId, mode, payment, decisionId, outcome } = payload;
  const receipt = { id, keyId: textOrNull(read.jws?.header.kid), signature: shownSignature(jws) };
  if (kind === 'receipt') return differing(text, { ...receipt, payload });
  const { status, responseStatus, errorCategory } = outcome;
  const attempts = payload.attempts.length;
  const job = { id: jobId, status, attempts, decisionId, responseStatus, errorCategory };
  return differing(text, { mode, job, receipt, payment });
}

/** The members that `text` has and that differ from the signed ones; a payload has to have the same members. */
const differing = (text: JsonMap, signed: JsonMap, path = ''): readonly string[] =>
  Object.entries(signed).flatMap(([name, value]) => {
    const found = text[name];
    if (found === undefined || sameJson(found, value)) return [];
    return isObject(found) && isObject(value) && name !== 'payload'
      ? differing(found, value, `${path}${name}.`)
      : [`${path}${name}`];
  });

const textOrNull = (value: unknown): string | null => (typeof value === 'string' ? value : null);

export type ReceiptReport = VerificationReport & {
  /** Why the document contains no receipt; null if it contains one. */
  readonly problem: string | null;
  /** The signed payload; null unless the signature verifies. */
  readonly payload: ReceiptPayload | null;
  /** Readable members beside the signed receipt that differ from it, such as `job.status`. */
  readonly differences: readonly string[];
  /** null: none were given. Empty if the receipt does not verify, because they prove nothing then. */
  readonly opened: readonly OpenedDisclosure[] | null;
};

export type DocumentFacts = Pick<VerifyFacts, 'keys' | 'log'> & {
  /** The requested ids; null: those that the document states. */
  readonly receiptId: string | null;
  readonly jobId: string | null;
  /** null: none were given. */
  readonly disclosures: readonly string[] | null;
};

/** `ok`: every check holds, no readable member differs, and every disclosure opens a commitment of the receipt. */
export async function verifyDocument(
  document: ReceiptDocument | NoDocument,
  { keys, log, receiptId, jobId, disclosures }: DocumentFacts,
  primitives: Primitives,
): Promise<ReceiptReport> {
  const { jws, ...named } = document.kind === null ? NOTHING : document;
  const asked = { receiptId: receiptId ?? named.receiptId, jobId: jobId ?? named.jobId };
  const read = readReceipt(jws);
  const report = await verifySignedReceipt({ jws, ...asked, keys, job: null, log }, primitives, read);
  const payload = report.signatureVerified ? read.payload : null;
  const differing = document.kind === null ? [] : differences(document, read);
  const trusted = report.ok && payload !== null;
  const opened = disclosures && (trusted ? openDisclosures(payload, disclosures) : []);
  return {
    ...report,
    ok: report.ok && differing.length === 0 && (opened?.every(({ ok }) => ok) ?? true),
    problem: document.kind === null ? `The text ${document.problem}: ${RECEIPT_FORMS}.` : null,
    payload,
    differences: differing,
    opened,
  };
}

const NOTHING = { jws: '', receiptId: null, jobId: null };

/** Whether every check of the receipt holds, regardless of the text and the disclosures beside it. */
export const allChecksHold = ({ checks }: Pick<VerificationReport, 'checks'>): boolean =>
  checks.every(({ ok }) => ok);
