// How a job or a receipt stands, as its page and its badge show it.
import type { JobRecord } from '#projections/job/query.ts';
import type { VerificationReport } from '#src/domain/receipt/verify.ts';
import { isRefused, type Refused, refused } from '#src/domain/refusal.ts';
import type { HttpDeps } from '#src/http/deps.ts';
import { isReceiptId, loadJob } from '#src/http/routes/jobs.ts';
import { verifyJobForSure, verifyReceiptForSure } from '#src/http/routes/verify.ts';

export type Standing = {
  readonly state: 'verified' | 'failed' | 'running';
  /** null: the job is no longer retained. */
  readonly job: JobRecord | null;
  /** null: no receipt yet. */
  readonly report: VerificationReport | null;
};

/** `id`: of a job or of a receipt. */
export async function standingOf(deps: HttpDeps, id: string): Promise<Standing | Refused> {
  return isReceiptId(id) ? standingOfReceipt(deps, id) : standingOfJob(deps, id);
}

async function standingOfReceipt(deps: HttpDeps, id: string): Promise<Standing | Refused> {
  const report = await verifyReceiptForSure(deps, id);
  if (isRefused(report)) return report;
  const job = report.jobId === null ? null : await deps.reads.job.find(report.jobId);
  return { state: stateOf(job, report), job, report };
}

async function standingOfJob(deps: HttpDeps, id: string): Promise<Standing | Refused> {
  const job = await loadJob(deps, id);
  if (isRefused(job)) return refused('job_not_found', 'There is no such job or receipt.');
  if (job.receiptId === null) return { state: 'running', job, report: null };
  const report = await verifyJobForSure(deps, id);
  return isRefused(report) ? report : { state: stateOf(job, report), job, report };
}

/** A failed job is shown as failed though its receipt verifies: the badge speaks of the outcome. */
function stateOf(job: JobRecord | null, report: VerificationReport): Standing['state'] {
  return report.ok && job?.status !== 'failed' ? 'verified' : 'failed';
}
