// The verifier to import: one receipt, or one proof, checked with a key set at hand. It asks nobody: no network, no
// storage, no package. The checks are the domain's, the same that the service, the command line and the pages make.
import { toBase64 } from '#src/domain/encoding.ts';
import { logOf, payloadOf } from '../domain/receipt/payload.ts';
import { type ReceiptReport, verifyDocument } from '../domain/receipt/verify-document.ts';
import { receiptLeafData } from '../domain/transparency/leaves.ts';
import { type ProofProblem, verifyTlogProof } from '../domain/transparency/tlog-proof.ts';
import { disclosureTexts, documentOf, type Given, keysOf, logFacts, proofText } from './given.ts';
import { webPrimitives } from './primitives.ts';

export { CannotVerify } from './primitives.ts';

export type VerifyOptions = {
  /** The relay's JWK set (RFC 7517), from its /.well-known/jwks.json, got from whoever you trust for it. */
  readonly keys: Given;
  /**
   * Proof of inclusion in the transparency log (C2SP tlog-proof), from /log/proof/{receiptId}. null: it was asked and
   * gave none; then the receipt must be so young that it need not be there yet. Absent: the log is not looked at.
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

/**
 * `receipt`: a compact JWS, the answer of GET /api/receipts/{id}, or an execution response. `ok`: every check holds, no
 * readable word differs, and every disclosure opens what the receipt commits to. What cannot be read is a report that
 * says so. Throws a TypeError where `keys` is no key set with an Ed25519 key in it or an option is of a wrong type, and
 * `CannotVerify` where the runtime has no WebCrypto with Ed25519.
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
 * That a receipt stands in the transparency log, by a proof file (C2SP tlog-proof). It says nothing of the receipt's own
 * signature. `problem`: `receipt` (there is none in what was given), `malformed` (no proof file), `checkpoint` (not
 * signed by a checkpoint key of the key set), `origin` (of another log than the receipt names), `inclusion` (the receipt
 * is not where the proof says). Throws as `verifyReceipt` does.
 */
export async function verifyProof(
  proof: string,
  options: { readonly receipt: Given; readonly keys: Given },
): Promise<ProofReport> {
  const keys = keysOf(options);
  const text = proofText(proof);
  const document = documentOf(options.receipt);
  if (document.kind === null) return { ok: false, problem: 'receipt' };
  const payload = payloadOf(document.jws);
  const leafData = receiptLeafData(document.jws);
  const origin = payload === null ? null : (logOf(payload)?.origin ?? null);
  const verdict = await verifyTlogProof(text, { leafData, origin }, keys, webPrimitives);
  if (!verdict.ok) return verdict;
  const { size, origin: name, root, keyId } = verdict.checkpoint;
  return { ok: true, index: verdict.index, size, origin: name, root: toBase64(root), keyId };
}
