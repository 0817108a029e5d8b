// What is returned of a stored receipt: itself with the verdict of now, and the verification of a receipt or of a job.
import type { VerificationReport } from '#src/domain/receipt/report.ts';
import { type Refused, refused } from '#src/domain/refusal.ts';
import { parseCheckpoint } from '#src/domain/transparency/checkpoint.ts';
import {
  type StoredJob,
  type StoredReceipt,
  storedReceiptVerifier,
  type VerifyDeps,
} from './verify-stored.ts';

/** Each throws `Fault('read_models_unavailable')` if the read models are unavailable; null: not retained. */
export type ReceiptRows<R extends StoredReceipt> = {
  receipt(id: string): Promise<R | null>;
  job(id: string): Promise<(StoredJob & { readonly receiptId: string | null }) | null>;
};

export function storedReceipts<R extends StoredReceipt>(rows: ReceiptRows<R>, deps: VerifyDeps) {
  const verify = storedReceiptVerifier(deps);
  return {
    /** `verified` by the published keys as they are now, not as it was found when the receipt was recorded. */
    async find(id: string) {
      const receipt = await rows.receipt(id);
      if (receipt === null) return null;
      const report = await verify(receipt, null);
      return { ...receipt, verified: report.ok, checkpoint: await checkpointOf(report, deps.transparency) };
    },
    async verifyJob(jobId: string) {
      const job = await rows.job(jobId);
      if (job === null) return notFound('job_not_found');
      if (job.receiptId === null) return refused('receipt_not_ready', 'The job has no receipt yet.');
      const receipt = await rows.receipt(job.receiptId);
      return receipt === null ? notFound('receipt_not_found') : verify(receipt, job);
    },
    async verifyReceipt(receiptId: string) {
      const receipt = await rows.receipt(receiptId);
      return receipt === null
        ? notFound('receipt_not_found')
        : verify(receipt, await rows.job(receipt.jobId));
    },
  };
}

/** The newest checkpoint that contains a verified receipt; null: none does yet. */
async function checkpointOf(
  { checks }: VerificationReport,
  { latest, checkpoint }: VerifyDeps['transparency'],
): Promise<string | null> {
  const details = checks.find((check) => check.name === 'receipt_logged')?.details;
  if (details === undefined || !('index' in details)) return null;
  const newest = latest();
  const isIn = details.index < (parseCheckpoint(newest ?? '')?.size ?? 0);
  return isIn ? newest : checkpoint();
}

function notFound<C extends 'job_not_found' | 'receipt_not_found'>(code: C): Refused<C> {
  return refused(code, 'There is no such job or receipt, or it is no longer retained.');
}
