// Proof reports on the wire: every check that the one verifier made.
import { Type } from '@sinclair/typebox';
import { Elysia } from 'elysia';
import type { JobRecord } from '#projections/job/query.ts';
import { DONE_WHEN } from '#src/discovery/guidance.ts';
import { ROUTES } from '#src/discovery/routes.ts';
import type { VerificationReport } from '#src/domain/receipt/report.ts';
import { isRefused, type Refused, refused } from '#src/domain/refusal.ts';
import { Closed, Nullable } from '#src/domain/schema-parts.ts';
import type { ProgressOf } from '#src/http/deps.ts';
import { describe } from '#src/http/openapi/operation.ts';
import { findForSure } from '#src/http/request/read.ts';
import { refusalAnswer } from '#src/http/response/errors.ts';
import { json } from '#src/http/response/json.ts';
import { isJobId, isReceiptId, type JobDeps, jobMissing, loadJob, receiptMissing } from './jobs.ts';

export const VerificationResponse = Closed({
  ok: Type.Boolean({ description: 'Every check is ok.' }),
  receiptId: Nullable(Type.String()),
  jobId: Nullable(Type.String()),
  keyId: Nullable(Type.String()),
  signatureVerified: Type.Boolean(),
  checks: Type.Array(
    Closed({
      name: Type.String(),
      ok: Type.Boolean(),
      details: Type.Optional(
        Type.Unknown({
          description:
            'The values compared. Of receipt_logged: `pending`, true while it is not logged and not late; not logged: `dueBy`, Unix seconds until when it may be missing; logged: `origin`, the name of the log, `index`, its leaf from 0, and `size`, leaves under the checkpoint of the proof; not ok: `problem`, why: malformed, checkpoint, origin or inclusion (the proof does not hold) or future (it dates itself over a day ahead); none where it is late.',
        }),
      ),
    }),
  ),
});

export type VerifyDeps = ProgressOf<'reachedHead'> & {
  verifyJob(jobId: string): Promise<VerificationReport | Refused>;
  verifyReceipt(receiptId: string): Promise<VerificationReport | Refused>;
};

function verifyJob(deps: VerifyDeps, id: string) {
  return isJobId(id) ? findForSure(deps.progress, () => deps.verifyJob(id), jobMissing) : jobMissing;
}

function verifyReceipt(deps: VerifyDeps, id: string) {
  return isReceiptId(id)
    ? findForSure(deps.progress, () => deps.verifyReceipt(id), receiptMissing)
    : receiptMissing;
}

export function verifyRoutes(deps: VerifyDeps) {
  return new Elysia()
    .get(
      ROUTES.verifyJob.path,
      async ({ params }) => answerOf(await verifyJob(deps, params.id)),
      describe(ROUTES.verifyJob, jobOperation),
    )
    .get(
      ROUTES.verifyReceipt.path,
      async ({ params }) => answerOf(await verifyReceipt(deps, params.id)),
      describe(ROUTES.verifyReceipt, receiptOperation),
    );
}

function answerOf(report: VerificationReport | Refused): Response {
  return isRefused(report) ? refusalAnswer(report) : json(200, report);
}

/** The status of a job or a receipt, as its page and its badge show it. */
export type Standing = {
  readonly state: 'verified' | 'failed' | 'running';
  /** null: the job is no longer retained. */
  readonly job: JobRecord | null;
  /** null: no receipt yet. */
  readonly report: VerificationReport | null;
};

export type StandingDeps = JobDeps & VerifyDeps;

/** `id`: of a job or of a receipt. */
export async function standingOf(deps: StandingDeps, id: string): Promise<Standing | Refused> {
  if (isReceiptId(id)) {
    const report = await verifyReceipt(deps, id);
    if (isRefused(report)) return report;
    const job = report.jobId === null ? null : await deps.reads.job.find(report.jobId);
    return { state: stateOf(job, report), job, report };
  }
  const job = await loadJob(deps, id);
  if (isRefused(job)) return refused('job_not_found', 'There is no such job or receipt.');
  if (job.receiptId === null) return { state: 'running', job, report: null };
  const report = await verifyJob(deps, id);
  return isRefused(report) ? report : { state: stateOf(job, report), job, report };
}

/** A failed job is shown as failed although its receipt verifies: the badge states the outcome. */
function stateOf(job: JobRecord | null, report: VerificationReport): Standing['state'] {
  return report.ok && job?.status !== 'failed' ? 'verified' : 'failed';
}

const report = [`The report. An action is done only when ${DONE_WHEN}.`, VerificationResponse] as const;
const unavailable = 'The read models or the event log are unavailable.';

const jobOperation = {
  id: { name: 'id', description: 'Identifier of the job.' },
  answers: { 200: report } as const,
  errors: { 404: 'No such job or receipt.', 409: 'The job has no receipt yet.', 503: unavailable },
};

const receiptOperation = {
  id: { name: 'id', description: 'Identifier of the receipt.' },
  answers: { 200: report } as const,
  errors: { 404: 'No such receipt.', 503: unavailable },
};
