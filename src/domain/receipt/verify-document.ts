// Verifies a document with a receipt: the verifier's checks, the readable members around the JWS compared with what was
// signed, and the disclosures opened. Command line, pages and the importable verifier use it.
import {
  type Difference,
  differences,
  type NoDocument,
  RECEIPT_FORMS,
  type ReceiptDocument,
} from './document.ts';
import { type OpenedDisclosure, openDisclosures } from './open-disclosures.ts';
import { payloadOf, type ReceiptPayload } from './payload.ts';
import type { Primitives, VerificationReport } from './report.ts';
import { type VerifyFacts, verifyReceipt } from './verify.ts';

export type ReceiptReport = VerificationReport & {
  /** Why the document contains no receipt; null if it contains one. */
  readonly problem: string | null;
  /** The signed payload; null unless the signature verifies. */
  readonly payload: ReceiptPayload | null;
  /** Where readable members beside the signed receipt differ from it. */
  readonly differences: readonly Difference[];
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
  const report = await verifyReceipt({ jws, ...asked, keys, job: null, log }, primitives);
  const payload = report.signatureVerified ? payloadOf(jws) : null;
  const differing = document.kind === null ? [] : differences(document);
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
