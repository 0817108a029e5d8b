// What the read endpoints ask: the read models' answers, and the verifier's over them and the log.
import type { ReadModels } from '#projections/read-models.ts';
import { type Refused, refused } from '#src/domain/refusal.ts';
import type { HttpDeps, Reads } from '#src/http/deps.ts';
import { type VerifyDeps, verifyStored } from '#src/usecases/receipts/verify-stored.ts';
import type { AsOfNow } from './as-of-now.ts';

export type ReadsDeps = VerifyDeps & { readonly models: ReadModels; readonly now: AsOfNow };

export function wireReads(deps: ReadsDeps): Pick<HttpDeps, 'verifyJob' | 'verifyReceipt'> & { reads: Reads } {
  const { models } = deps;
  return {
    reads: readsOf(deps),
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

/** The read models' parts are proxies: named one by one. */
function readsOf(deps: ReadsDeps): Reads {
  const { job, monitoring, store } = deps.models;
  const { proof, trust, decision, receipt } = deps.now;
  const countUnverified = () => receipt.countUnverified();
  return {
    job,
    monitoring,
    store,
    proof,
    trust,
    decision,
    receipt: { find: findReceipt(deps), countUnverified },
  };
}

/** `verified` as of now, by the published keys, not as it was found when the receipt was recorded. */
function findReceipt(deps: ReadsDeps): Reads['receipt']['find'] {
  const { receipt: receipts, transparency: log } = deps.models;
  return async (id) => {
    const receipt = await receipts.find(id);
    if (receipt === null) return null;
    const [report, index, newest] = await Promise.all([
      verifyStored(deps, receipt, null),
      log.leafIndex(id),
      log.checkpoint(),
    ]);
    const logged = index !== null && newest !== null && newest.size > index;
    return { ...receipt, verified: report.ok, checkpoint: logged ? newest.note : null };
  };
}

function notFound<C extends 'job_not_found' | 'receipt_not_found'>(code: C): Refused<C> {
  return refused(code, 'There is no such job or receipt, or it is no longer retained.');
}
