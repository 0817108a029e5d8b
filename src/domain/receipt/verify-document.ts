// A receipt as people hold it: the one verifier's checks, the readable words around it compared with what was signed, and
// its disclosures opened. Command line, pages and importers all judge by it.
import {
  type Difference,
  differences,
  type NoDocument,
  RECEIPT_FORMS,
  type ReceiptDocument,
} from './document.ts';
import { type OpenedDisclosure, openDisclosures } from './open-disclosures.ts';
import { payloadOf, type ReceiptPayload } from './payload.ts';
import { type Primitives, type VerificationReport, type VerifyFacts, verifyReceipt } from './verify.ts';

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

export type DocumentFacts = Pick<VerifyFacts, 'keys' | 'log'> & {
  /** What was asked for; null: what the document says of itself. */
  readonly receiptId: string | null;
  readonly jobId: string | null;
  /** null: none are given. */
  readonly disclosures: readonly string[] | null;
};

/** `ok`: every check holds, no readable word differs, and every disclosure opens what the receipt commits to. */
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
  const vouched = report.ok && payload !== null;
  const opened = disclosures && (vouched ? openDisclosures(payload, disclosures) : []);
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

/** Whether every check of the receipt itself holds, whatever is written or disclosed beside it. */
export const isVouchedFor = ({ checks }: Pick<VerificationReport, 'checks'>): boolean =>
  checks.every(({ ok }) => ok);
