// The importable verifier: checks one receipt with a given key set. It uses no network, no storage and no
// package. The checks are the same as those of the service, the command line and the pages.
import { type ReceiptReport, verifyDocument } from '../domain/receipt/document.ts';
import { disclosureTexts, documentOf, type Given, keysOf, logFacts } from './given.ts';
import { webPrimitives } from './primitives.ts';

export { CannotVerify } from './primitives.ts';

export type VerifyOptions = {
  /** The relay's JWK set (RFC 7517), as in its /.well-known/jwks.json, from a source that you trust. */
  readonly keys: Given;
  /**
   * Proof of inclusion in the transparency log (C2SP tlog-proof), from /log/proof/{receiptId}. null: the
   * relay has none; then the receipt must not be due in the log yet. Absent: the log is not checked.
   */
  readonly proof?: string | null;
  /** The disclosures to open: `disclosures` of an execution response, or the response itself. */
  readonly disclosures?: Given | readonly string[];
  /** Unix seconds; the machine's clock unless given. Used only to decide whether a receipt is late in the log. */
  readonly now?: number;
  /** The expected ids, if the receipt must have them. */
  readonly receiptId?: string;
  readonly jobId?: string;
};

/**
 * `receipt`: a compact JWS, the answer of GET /api/receipts/{id}, or an execution response. `ok`: every check holds, no
 * readable member differs, and every disclosure opens a commitment of the receipt. The report of an unreadable receipt
 * states the `problem`. Throws a TypeError if `keys` is no key set with an Ed25519 key or an option is of a wrong type, and
 * `CannotVerify` if the runtime has no WebCrypto with Ed25519.
 */
export async function verifyReceipt(receipt: Given, options: VerifyOptions): Promise<ReceiptReport> {
  const facts = {
    keys: keysOf(options),
    disclosures: disclosureTexts(options.disclosures),
    log: logFacts(options.proof, options.now),
    receiptId: options.receiptId ?? null,
    jobId: options.jobId ?? null,
  };
  return verifyDocument(documentOf(receipt), facts, webPrimitives);
}
