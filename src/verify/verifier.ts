// The verifier to import: one receipt, or one proof, checked with a key set at hand. It asks nobody: no network, no
// storage, no package. The checks are the domain's, the same that the service, the command line and the pages make.
import { toBase64 } from '../domain/bytes.ts';
import {
  type Difference,
  differences,
  disclosuresOf,
  type NoDocument,
  RECEIPT_FORMS,
  type ReceiptDocument,
  readReceiptDocument,
  receiptDocumentOf,
} from '../domain/receipt/document.ts';
import { fromJwkSet, type KeyRecord } from '../domain/receipt/keys.ts';
import type { LogFacts } from '../domain/receipt/log-check.ts';
import { type OpenedDisclosure, openDisclosures } from '../domain/receipt/open-disclosures.ts';
import { isReceiptPayload, parseJws, type ReceiptPayload } from '../domain/receipt/payload.ts';
import { type VerificationReport, verifyReceipt as verifyFacts } from '../domain/receipt/verify.ts';
import { receiptLeafData } from '../domain/transparency/leaves.ts';
import { type ProofProblem, verifyTlogProof } from '../domain/transparency/tlog-proof.ts';
import { webPrimitives } from './primitives.ts';

export { CannotVerify } from './primitives.ts';

/** As text, or as parsed JSON. */
export type Given = string | object;

export type VerifyOptions = {
  /** The relay's JWK set (RFC 7517), from its /.well-known/jwks.json, got from whoever you trust for it. */
  readonly keys: Given;
  /**
   * Proof of inclusion in the public log (C2SP tlog-proof), from /log/proof/{receiptId}. null: the log was asked and gave
   * none; then the receipt must be so young that it need not be there yet. Absent: the log is not looked at.
   */
  readonly proof?: string | null;
  /** What opens the receipt's commitments: `disclosures` of an execution response, or the response itself. */
  readonly disclosures?: Given | readonly string[];
  /** Unix seconds; the machine's clock unless given. It decides nothing but whether a receipt is late in the log. */
  readonly now?: number;
  /** What was asked for, where the receipt must be that one. */
  readonly receiptId?: string;
  readonly jobId?: string;
};

export type ReceiptReport = VerificationReport & {
  /** Why there is no receipt in what was given; null where there is one. */
  readonly problem: string | null;
  /** What was signed; null unless the signature verifies. */
  readonly payload: ReceiptPayload | null;
  /** Where readable words beside the signed receipt say something else than it. */
  readonly differences: readonly Difference[];
  /** null: none were given. Empty where the receipt does not verify: nothing vouches for them then. */
  readonly opened: readonly OpenedDisclosure[] | null;
};

/**
 * `receipt`: a compact JWS, the answer of GET /api/receipts/{id}, or an execution response. `ok`: every check holds, no
 * readable word differs, and every disclosure opens what the receipt commits to. What cannot be read is a report that
 * says so. Throws a TypeError where `keys` is no key set with an Ed25519 key in it or an option is of a wrong type, and
 * `CannotVerify` where the runtime has no WebCrypto with Ed25519.
 */
export async function verifyReceipt(receipt: Given, options: VerifyOptions): Promise<ReceiptReport> {
  const keys = keysOf(options);
  const texts = disclosureTexts(options.disclosures);
  const document = documentOf(receipt);
  const log = logFacts(options);
  const facts = {
    jws: document.kind === null ? '' : document.jws,
    receiptId: options.receiptId ?? (document.kind === null ? null : document.receiptId),
    jobId: options.jobId ?? (document.kind === null ? null : document.jobId),
  };
  const report = await verifyFacts({ ...facts, keys, job: null, log }, webPrimitives);
  const payload = report.signatureVerified ? payloadOf(facts.jws) : null;
  const differing = document.kind === null ? [] : differences(document);
  const vouched = report.ok && payload !== null;
  const opened = texts && (vouched ? await openDisclosures(payload, texts, webPrimitives.sha256) : []);
  return {
    ...report,
    ok: report.ok && differing.length === 0 && (opened?.every(({ ok }) => ok) ?? true),
    problem: document.kind === null ? `The text ${document.problem}: ${RECEIPT_FORMS}.` : null,
    payload,
    differences: differing,
    opened,
  };
}

export type ProofReport =
  | {
      readonly ok: true;
      /** Of the leaf, from 0. */
      readonly index: number;
      /** Leaves in the log when the checkpoint was signed. */
      readonly size: number;
      /** The log's name. */
      readonly origin: string;
      /** Root of the tree of that size: base64 of 32 bytes. */
      readonly root: string;
      /** The checkpoint key that signed. */
      readonly keyId: string;
    }
  | { readonly ok: false; readonly problem: ProofProblem | 'receipt' };

/**
 * That a receipt stands in the public log, by a proof file (C2SP tlog-proof). It says nothing of the receipt's own
 * signature. `problem`: `receipt` (there is none in what was given), `malformed` (no proof file), `checkpoint` (not
 * signed by a checkpoint key of the key set), `origin` (of another log than the receipt names), `inclusion` (the receipt
 * is not where the proof says). Throws as `verifyReceipt` does.
 */
export async function verifyProof(
  proof: string,
  options: { readonly receipt: Given; readonly keys: Given },
): Promise<ProofReport> {
  const keys = keysOf(options);
  if (typeof proof !== 'string') throw new TypeError('the proof must be the text of a proof file');
  const document = documentOf(options.receipt);
  if (document.kind === null) return { ok: false, problem: 'receipt' };
  const leafData = await receiptLeafData(document.jws, webPrimitives.sha256);
  const origin = payloadOf(document.jws)?.log?.origin ?? null;
  const verdict = await verifyTlogProof(proof, { leafData, origin }, keys, webPrimitives);
  if (!verdict.ok) return verdict;
  const { size, origin: name, root, keyId } = verdict.checkpoint;
  return { ok: true, index: verdict.index, size, origin: name, root: toBase64(root), keyId };
}

function documentOf(receipt: Given): ReceiptDocument | NoDocument {
  if (typeof receipt === 'string') return readReceiptDocument(receipt);
  if (typeof receipt !== 'object' || receipt === null)
    throw new TypeError('the receipt must be a text or parsed JSON');
  return receiptDocumentOf(receipt);
}

function keysOf(options: Pick<VerifyOptions, 'keys'> | undefined): readonly KeyRecord[] {
  const { keys: given }: { readonly keys?: unknown } = options ?? {};
  if (given === undefined || given === null)
    throw new TypeError("keys are missing: the relay's JWK set, from its /.well-known/jwks.json");
  const keys = fromJwkSet(typeof given === 'string' ? parsed(given) : given);
  if (keys === null) throw new TypeError('keys is no JWK set (RFC 7517)');
  if (keys.length === 0) throw new TypeError('keys holds no Ed25519 key');
  return keys;
}

function disclosureTexts(given: VerifyOptions['disclosures']): readonly string[] | null {
  if (given === undefined) return null;
  const texts = disclosuresOf(typeof given === 'string' ? parsed(given) : given);
  if (texts !== null) return texts;
  throw new TypeError('disclosures must be an array of texts, or an execution response that has them');
}

function logFacts({ proof, now = Math.floor(Date.now() / 1000) }: VerifyOptions): LogFacts | null {
  if (proof === undefined) return null;
  if (proof !== null && typeof proof !== 'string')
    throw new TypeError('the proof must be the text of a proof file, or null');
  if (!Number.isFinite(now)) throw new TypeError('now must be a number of seconds');
  return { proof, now };
}

function payloadOf(jws: string): ReceiptPayload | null {
  const payload = parseJws(jws)?.payload;
  return isReceiptPayload(payload) ? payload : null;
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
