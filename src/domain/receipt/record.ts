// A receipt as it is answered: what its event states, and what is read from its JWS.
import type { ReceiptSigned } from '#src/domain/events/job.ts';
import { payloadOf, type ReceiptPayload, shownSignature } from './payload.ts';

/** `GET /api/receipts/{id}` without links, verdict and checkpoint; and the job that it is of. */
export type ReceiptRecord = {
  readonly id: string;
  readonly jobId: string;
  readonly decisionId: string | null;
  readonly keyId: string;
  /** As signed; null where it is of no version that this service knows. */
  readonly payload: ReceiptPayload | null;
  readonly jws: string;
  /** `ed25519:` and the JWS's signature part. */
  readonly signature: string;
  readonly signedAt: string;
};

export function receiptRecord(signed: Omit<ReceiptSigned, 'v'>): ReceiptRecord {
  const { receiptId: id, jobId, decisionId, keyId, jws, signedAt } = signed;
  const [payload, signature] = [payloadOf(jws), shownSignature(jws)];
  return { id, jobId, decisionId, keyId, payload, jws, signature, signedAt };
}
