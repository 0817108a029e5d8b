// What the read endpoints ask: the read models' answers, and the verifier's over them and the log.
import type { ReadModels } from '#projections/read-models.ts';
import { type Refused, refused } from '../domain/refusal.ts';
import type { HttpDeps, Reads } from '../http/deps.ts';
import { type VerifyDeps, verifyStored } from '../usecases/verify-stored.ts';

export type ReadsDeps = VerifyDeps & { readonly models: ReadModels };

export function wireReads(deps: ReadsDeps): Pick<HttpDeps, 'verifyJob' | 'verifyReceipt'> & { reads: Reads } {
  const { models } = deps;
  return {
    reads: { ...allOf(models), receipt: { ...receiptReads(deps) } },
    async verifyJob(jobId) {
      const job = await models.job.findForVerification(jobId);
      if (job === null) return notFound('job_not_found');
      if (job.receiptId === null) return refused('receipt_not_ready', 'The job has no receipt yet.');
      const receipt = await models.receipt.find(job.receiptId);
      return receipt === null ? notFound('receipt_not_found') : verifyStored(deps, receipt, job);
    },
    async verifyReceipt(receiptId) {
      const receipt = await models.receipt.find(receiptId);
      if (receipt === null) return notFound('receipt_not_found');
      return verifyStored(deps, receipt, await models.job.findForVerification(receipt.jobId));
    },
  };
}

/** `verified` as of now, by the published keys: what was found when the receipt was recorded is for the counters. */
function receiptReads(deps: ReadsDeps): Reads['receipt'] {
  const { receipt: receipts, transparency: log } = deps.models;
  return {
    async find(id) {
      const receipt = await receipts.find(id);
      if (receipt === null) return null;
      const [report, index, newest] = await Promise.all([
        verifyStored(deps, receipt, null),
        log.leafIndex(id),
        log.checkpoint(),
      ]);
      const logged = index !== null && newest !== null && newest.size > index;
      return { ...receipt, verified: report.ok, checkpoint: logged ? newest.note : null };
    },
    countUnverified: () => receipts.countUnverified(),
  };
}

/** The read models' parts are proxies: named one by one. */
function allOf({ job, proof, monitoring, trust, decision, store }: ReadModels) {
  return { job, proof, monitoring, trust, decision, store };
}

function notFound<C extends 'job_not_found' | 'receipt_not_found'>(code: C): Refused<C> {
  return refused(code, 'There is no such job or receipt, or it is no longer retained.');
}
