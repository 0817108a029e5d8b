// What the routes and decisions read: the read models' rows, and the verifier over them and the event log.
import { windowStart } from '#projections/monitoring/query.ts';
import type { ReadModels } from '#projections/read-models.ts';
import type { Mode } from '#src/domain/event-fields.ts';
import {
  type CheckpointStatus,
  TRUST_WINDOW_MS,
  type TrustFacts,
  trustFacts,
  trustScore,
} from '#src/domain/monitoring/trust.ts';
import type { VerificationReport } from '#src/domain/receipt/report.ts';
import { type Refused, refused } from '#src/domain/refusal.ts';
import { parseCheckpoint } from '#src/domain/transparency/checkpoint.ts';
import type { Reads } from '#src/http/deps.ts';
import type { VerifyDeps as VerifyRouteDeps } from '#src/http/routes/verify.ts';
import type { Clock } from '#src/ports/clock.ts';
import { storedReceiptVerifier, type VerifyDeps } from '#src/usecases/receipts/verify-stored.ts';

export type ReadsDeps = VerifyDeps & { readonly models: ReadModels };

export function wireReads(
  deps: ReadsDeps,
): Pick<VerifyRouteDeps, 'verifyJob' | 'verifyReceipt'> & { readonly reads: Reads } {
  const { models, transparency } = deps;
  const { job: jobs, receipt: receipts } = models;
  const verify = storedReceiptVerifier(deps);
  return {
    reads: {
      job: jobs,
      proof: models.proof,
      monitoring: models.monitoring,
      trust: models.trust,
      decision: models.decision,
      store: models.store,
      receipt: {
        countUnverified: () => models.store.countUnverified(),
        // `verified` by the published keys as they are now, not as it was found when the receipt was recorded.
        async find(id) {
          const receipt = await receipts.find(id);
          if (receipt === null) return null;
          const report = await verify(receipt, null);
          return { ...receipt, verified: report.ok, checkpoint: await checkpointOf(report, transparency) };
        },
      },
    },
    async verifyJob(jobId) {
      const job = await jobs.findForVerification(jobId);
      if (job === null) return notFound('job_not_found');
      if (job.receiptId === null) return refused('receipt_not_ready', 'The job has no receipt yet.');
      const receipt = await receipts.find(job.receiptId);
      return receipt === null ? notFound('receipt_not_found') : verify(receipt, job);
    },
    async verifyReceipt(receiptId) {
      const receipt = await receipts.find(receiptId);
      if (receipt === null) return notFound('receipt_not_found');
      return verify(receipt, await jobs.findForVerification(receipt.jobId));
    },
  };
}

/** The newest checkpoint that contains a verified receipt; null: none does yet. */
async function checkpointOf(
  { checks }: VerificationReport,
  { latest, checkpoint }: VerifyDeps['transparency'],
): Promise<string | null> {
  const details = checks.find(({ name, ok }) => name === 'receipt_logged' && ok)?.details;
  if (typeof details !== 'object' || details === null || !('index' in details)) return null;
  const newest = latest();
  const isIn = Number(details.index) < (parseCheckpoint(newest ?? '')?.size ?? 0);
  return isIn ? newest : checkpoint();
}

function notFound<C extends 'job_not_found' | 'receipt_not_found'>(code: C): Refused<C> {
  return refused(code, 'There is no such job or receipt, or it is no longer retained.');
}

export type DecisionFactsDeps = {
  readonly models: {
    readonly monitoring: Pick<ReadModels['monitoring'], 'summary'>;
    readonly trust: Pick<ReadModels['trust'], 'receipts'>;
  };
  readonly checkpointStanding: () => CheckpointStatus | null;
  readonly clock: Pick<Clock, 'now'>;
  readonly mode: Mode;
  readonly storage: TrustFacts['storage'];
};

export type MeasuredFacts = {
  /** 0 to 100. */
  readonly trustScore: number;
  /** 0 to 1, of the jobs finished within the window; 0 if there were none. */
  readonly recentFailureRate: number;
  readonly recentFinishedJobs: number;
};

/**
 * What a decision uses of this relay's own record: the score and the failures of the trust summary. Throws
 * `Fault('read_models_unavailable')`.
 */
export function decisionFacts(deps: DecisionFactsDeps): () => Promise<MeasuredFacts> {
  const { models, checkpointStanding, clock, mode, storage } = deps;
  return async () => {
    const now = clock.now();
    const [{ stats, failureRate }, receipts] = await Promise.all([
      models.monitoring.summary(now, TRUST_WINDOW_MS),
      models.trust.receipts(windowStart(now, TRUST_WINDOW_MS)),
    ]);
    const facts = trustFacts({ mode, storage }, stats, receipts, checkpointStanding());
    return {
      trustScore: trustScore(facts).score,
      recentFailureRate: failureRate,
      recentFinishedJobs: stats.recentSucceeded + stats.recentFailed,
    };
  };
}
