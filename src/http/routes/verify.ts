// Proof reports on the wire: every check that the one verifier made.
import { Type } from '@sinclair/typebox';
import type { JobRecord } from '#projections/job/query.ts';
import { DONE_WHEN } from '#src/discovery/guidance.ts';
import { ROUTES } from '#src/discovery/routes.ts';
import { ID_PATTERN } from '#src/domain/ids.ts';
import type { VerificationReport } from '#src/domain/receipt/report.ts';
import { isRefused, type Refused, refused } from '#src/domain/refusal.ts';
import { Closed, Nullable } from '#src/domain/schema-parts.ts';
import type { ProgressOf } from '#src/http/deps.ts';
import { type Endpoint, endpoint } from '#src/http/endpoint.ts';
import { findById, isIdOf } from '#src/http/records.ts';
import { type JobRouteDeps, loadJob } from './jobs.ts';

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
            'The values compared. Of receipt_logged: `pending`, true while it is not logged and not late; not logged: `dueBy`, Unix seconds until when it may be missing; logged: `origin`, the name of the log, `index`, its leaf from 0, and `size`, leaves under the checkpoint of the proof; not ok: `problem`, why: malformed, checkpoint, origin or inclusion (the proof does not hold) or future (it dates itself over a day ahead); none where it is late. Of receipt_witnessed, in a log with witnesses: `quorum`, whether enough have cosigned the checkpoint of the proof, `names` and `times` (Unix seconds) of those that have, `missing`, those that have not, `pending` and `dueBy` as above; not ok: `problem`, why: proof, log, cosignature, unsupported or quorum.',
        }),
      ),
    }),
  ),
});

export type VerifyRouteDeps = ProgressOf<'reachedHead'> & {
  verifyJob(jobId: string): Promise<VerificationReport | Refused>;
  verifyReceipt(receiptId: string): Promise<VerificationReport | Refused>;
};

const verifyJob = ({ progress, verifyJob: verify }: VerifyRouteDeps, id: string) =>
  findById(progress, 'job', id, verify);

const verifyReceipt = ({ progress, verifyReceipt: verify }: VerifyRouteDeps, id: string) =>
  findById(progress, 'receipt', id, verify);

export function verifyRoutes(deps: VerifyRouteDeps): Endpoint[] {
  const answers = {
    200: [`The report. An action is done only when ${DONE_WHEN}.`, VerificationResponse],
  } as const;
  const errors = { 503: 'The read models or the event log are unavailable.' };
  return [
    endpoint(
      ROUTES.verifyJob,
      {
        id: { description: 'Identifier of the job.' },
        answers,
        errors: { 404: 'No such job or receipt.', 409: 'The job has no receipt yet.', ...errors },
      },
      async ({ id }) => verifyJob(deps, id),
    ),
    endpoint(
      ROUTES.verifyReceipt,
      {
        id: { description: 'Identifier of the receipt.', pattern: ID_PATTERN.receipt },
        answers,
        errors: { 404: 'No such receipt.', ...errors },
      },
      async ({ id }) => verifyReceipt(deps, id),
    ),
  ];
}

export type Standing = {
  readonly state: 'verified' | 'failed' | 'running';
  /** null: the job is no longer retained. */
  readonly job: JobRecord | null;
  /** null: no receipt yet. */
  readonly report: VerificationReport | null;
};

export type StandingDeps = JobRouteDeps & VerifyRouteDeps;

export function standings(deps: StandingDeps): (id: string) => Promise<Standing | Refused> {
  // A report is the same object only while the job's row is the one that it was computed from.
  const jobs = new WeakMap<VerificationReport, JobRecord | null>();
  const jobOf = async (report: VerificationReport): Promise<JobRecord | null> => {
    const known = jobs.get(report);
    if (known !== undefined) return known;
    const job = report.jobId === null ? null : await deps.reads.job.find(report.jobId);
    jobs.set(report, job);
    return job;
  };
  return async (id) => {
    if (isIdOf('receipt', id)) {
      const report = await verifyReceipt(deps, id);
      if (isRefused(report)) return report;
      const job = await jobOf(report);
      return { state: stateOf(job, report), job, report };
    }
    const job = await loadJob(deps, id);
    if (isRefused(job)) return refused('job_not_found', 'There is no such job or receipt.');
    if (job.receiptId === null) return { state: 'running', job, report: null };
    const report = await verifyJob(deps, id);
    return isRefused(report) ? report : { state: stateOf(job, report), job, report };
  };
}

/** A failed job is shown as failed although its receipt verifies: the badge states the outcome. */
function stateOf(job: JobRecord | null, report: VerificationReport): Standing['state'] {
  return report.ok && job?.status !== 'failed' ? 'verified' : 'failed';
}
