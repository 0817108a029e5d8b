// The importable verifier: checks one receipt, one proof or two checkpoints, with a given key set. It uses no network, no storage and no
// package. The checks are the same as those of the service, the command line and the pages.
import { toBase64 } from '#src/domain/encoding.ts';
import { parsedJson } from '../domain/canonical-json.ts';
import { type ReceiptReport, verifyDocument } from '../domain/receipt/document.ts';
import { logOf, payloadOf } from '../domain/receipt/payload.ts';
import {
  type Checkpoint,
  parseCheckpoint,
  verifySignedCheckpoint as verifyNote,
} from '../domain/transparency/checkpoint.ts';
import { type ConsistencyProblem, verifyGrowth } from '../domain/transparency/growth.ts';
import { type ProofProblem, verifyTlogProof } from '../domain/transparency/tlog-proof.ts';
import { receiptLeafData } from '../domain/transparency/tree.ts';
import { disclosureTexts, documentOf, type Given, keySetOf, logFacts, noteText, proofText } from './given.ts';
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
  /**
   * A policy file (C2SP tlog-policy), as text: a quorum of its witnesses must have cosigned the checkpoint of the proof (check
   * `receipt_witnessed`, with the names that are missing); without it the receipt does not verify, also while it is not due yet
   * (`details.pending`). Needs `proof`. ML-DSA-44 keys need a runtime whose WebCrypto has it.
   */
  readonly policy?: string;
  /** The disclosures to open: `disclosures` of an execution response, or the response itself. */
  readonly disclosures?: Given | readonly string[];
  /** Unix seconds; the machine's clock unless given. Used only to decide whether a receipt is late in the log, or its witnesses. */
  readonly now?: number;
  /** The expected ids, if the receipt must have them. */
  readonly receiptId?: string;
  readonly jobId?: string;
};

/**
 * `receipt`: a compact JWS, the answer of GET /api/receipts/{id}, or an execution response. `ok`: every check holds, no
 * readable member differs, and every disclosure opens a commitment of the receipt. The report of an unreadable receipt
 * states the `problem`. Throws a TypeError if `keys` is no key set with an Ed25519 key, `policy` is no policy, or an option is of a wrong type, and
 * `CannotVerify` if the runtime has no WebCrypto with Ed25519.
 */
export async function verifyReceipt(receipt: Given, options: VerifyOptions): Promise<ReceiptReport> {
  const facts = {
    keys: keySetOf(options),
    disclosures: disclosureTexts(options.disclosures),
    log: logFacts(options),
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
 * Verifies by a proof file (C2SP tlog-proof) that the transparency log contains a receipt. Does not verify the receipt's
 * own signature. `problem`: `receipt` (the document contains no receipt), `malformed` (no proof file), `checkpoint` (not
 * signed by a checkpoint key of the key set), `origin` (of another log than the receipt names), `inclusion` (the receipt
 * is not at the index of the proof). Throws as `verifyReceipt` does.
 */
export async function verifyProof(
  proof: string,
  options: { readonly receipt: Given; readonly keys: Given },
): Promise<ProofReport> {
  const keys = keySetOf(options);
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

/** A checkpoint whose signature verifies. */
export type VerifiedCheckpoint = {
  /** The log's name. */
  readonly origin: string;
  /** Leaves in the log when it was signed. */
  readonly size: number;
  /** Root of the tree of that size: base64 of 32 bytes. */
  readonly root: string;
  /** The checkpoint key that signed. */
  readonly keyId: string;
};

export type CheckpointReport =
  | ({ readonly ok: true } & VerifiedCheckpoint)
  | { readonly ok: false; readonly problem: 'malformed' | 'signature' };

/**
 * Verifies a checkpoint (C2SP tlog-checkpoint), such as the text of `/log/checkpoint` or the `checkpoint` of an execution
 * response. `problem`: `malformed` (no checkpoint), `signature` (not signed by a checkpoint key of the key set that is not
 * compromised). Throws as `verifyReceipt` does.
 */
export async function verifyCheckpoint(
  checkpoint: string,
  options: { readonly keys: Given },
): Promise<CheckpointReport> {
  const keys = keySetOf(options);
  const note = noteText(checkpoint);
  if (parseCheckpoint(note) === null) return { ok: false, problem: 'malformed' };
  const verified = await verifyNote(note, keys, webPrimitives);
  return verified === null ? { ok: false, problem: 'signature' } : { ok: true, ...shown(verified) };
}

export type ConsistencyReport =
  | { readonly ok: true; readonly older: VerifiedCheckpoint; readonly newer: VerifiedCheckpoint }
  | { readonly ok: false; readonly problem: ConsistencyProblem };

/**
 * Verifies that the log of the newer checkpoint contains everything that the older one covers, unchanged and in the same
 * order (RFC 6962 §2.1.2). `proof`: the answer of `/log/consistency?from=&to=` with both sizes, as text or parsed; not
 * needed if the sizes are equal or the older one is 0. Throws as `verifyReceipt` does.
 */
export async function verifyConsistency(
  claim: { readonly older: string; readonly newer: string; readonly proof?: Given | null },
  options: { readonly keys: Given },
): Promise<ConsistencyReport> {
  const keys = keySetOf(options);
  const { older, newer, proof = null } = claim;
  const answer = typeof proof === 'string' ? (parsedJson(proof) ?? {}) : proof;
  const given = { older: noteText(older), newer: noteText(newer), proof: answer };
  const verdict = await verifyGrowth(given, keys, webPrimitives);
  return verdict.ok ? { ok: true, older: shown(verdict.older), newer: shown(verdict.newer) } : verdict;
}

const shown = ({ origin, size, root, keyId }: Checkpoint): VerifiedCheckpoint => ({
  origin,
  size,
  root: toBase64(root),
  keyId,
});
