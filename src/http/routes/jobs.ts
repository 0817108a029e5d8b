// Jobs and receipts on the wire. Ids of jobs are public: a job shows nothing of its target, key or payer but commitments.

import { Type } from '@sinclair/typebox';
import type { JobRecord } from '#projections/job/query.ts';
import { ROUTES } from '#src/discovery/routes.ts';
import { ErrorCategory, Method, Mode, Phase, Sent, Timings } from '#src/domain/event-fields.ts';
import { ID_PATTERN } from '#src/domain/ids.ts';
import { ReceiptPayload } from '#src/domain/receipt/payload.ts';
import { isRefused, refused } from '#src/domain/refusal.ts';
import { Closed, Commitment, HttpStatus, Instant, Nullable, OneOf } from '#src/domain/schema-parts.ts';
import type { ProgressOf, ReadsOf, Settings } from '#src/http/deps.ts';
import { type Endpoint, endpoint } from '#src/http/endpoint.ts';
import { findForSure } from '#src/http/request/read.ts';
import { JobLinks, jobLinks, linksFrom } from '#src/http/response/links.ts';
import { shownBy } from '#src/http/response/shown.ts';

export const JobStatus = OneOf('running', 'succeeded', 'failed');

export const JobResponse = Closed({
  id: Type.String({ pattern: ID_PATTERN.job }),
  type: Type.Literal('webhook'),
  status: JobStatus,
  method: Method,
  mode: Mode,
  attempts: Type.Integer({ minimum: 0, maximum: 3 }),
  attemptLog: Type.Array(
    Closed({
      number: Type.Integer({ minimum: 1, maximum: 3 }),
      startedAt: Instant,
      completedAt: Instant,
      phase: Phase,
      sent: Sent,
      status: Nullable(HttpStatus),
      errorCategory: Nullable(ErrorCategory),
      timings: Timings,
    }),
  ),
  target: Closed({ scheme: Type.Literal('https'), commitment: Commitment }),
  requestHash: Commitment,
  responseStatus: Nullable(HttpStatus),
  responseOk: Type.Boolean(),
  responseHash: Nullable(Commitment),
  errorCategory: Nullable(ErrorCategory),
  decisionId: Nullable(Type.String()),
  receiptId: Nullable(Type.String()),
  refund: Nullable(
    Closed({
      transaction: Type.String({
        pattern: '^0x[0-9a-f]{64}$',
        description: 'The transfer that returned the whole charge to its payer.',
      }),
      verified: Type.Boolean({ description: 'The transfer was found on the chain.' }),
      refundedAt: Instant,
    }),
  ),
  createdAt: Instant,
  updatedAt: Instant,
  links: JobLinks,
});

export const ReceiptResponse = Closed({
  id: Type.String({ pattern: ID_PATTERN.receipt }),
  keyId: Type.String(),
  payload: Nullable(ReceiptPayload),
  jws: Type.String(),
  signature: Type.String(),
  verified: Type.Boolean({ description: 'Every check of the receipt alone is ok.' }),
  checkpoint: Nullable(
    Type.String({ description: 'The newest checkpoint that the receipt is in: a C2SP signed note.' }),
  ),
  links: JobLinks,
});

export const jobMissing = refused('job_not_found', 'There is no such job, or it is no longer retained.');
export const receiptMissing = refused(
  'receipt_not_found',
  'There is no such receipt, or it is no longer retained.',
);

export const isJobId = (id: string) => JOB_ID.test(id);
export const isReceiptId = (id: string) => RECEIPT_ID.test(id);

const JOB_ID = new RegExp(ID_PATTERN.job);
const RECEIPT_ID = new RegExp(ID_PATTERN.receipt);

export type JobDeps = ReadsOf<'job'> & ProgressOf<'reachedHead'>;

export function loadJob({ reads, progress }: JobDeps, id: string) {
  const isFinished = ({ status, receiptId }: JobRecord) => status !== 'running' && receiptId !== null;
  return isJobId(id) ? findForSure(progress, () => reads.job.find(id), jobMissing, isFinished) : jobMissing;
}

const jobShown = shownBy(JobResponse);
const BEHIND = 'The read models are unavailable or not up to date.';

export function jobRoutes(deps: JobDeps & ReadsOf<'receipt'> & Settings<'baseUrl'>): Endpoint[] {
  const { reads, progress, settings } = deps;
  const links = linksFrom(settings.baseUrl);
  return [
    endpoint(
      ROUTES.job,
      {
        id: { description: 'Identifier of the job.', pattern: ID_PATTERN.job },
        answers: { 200: ['The job.', JobResponse] },
        errors: { 404: 'No such job.', 503: BEHIND },
      },
      async ({ id }) => {
        const job = await loadJob(deps, id);
        if (isRefused(job)) return job;
        return jobShown({ ...job, links: jobLinks(links, id, job.receiptId, job.decisionId) });
      },
    ),
    endpoint(
      ROUTES.receipt,
      {
        id: { description: 'Identifier of the receipt.', pattern: ID_PATTERN.receipt },
        answers: { 200: ['The receipt.', ReceiptResponse] },
        errors: { 404: 'No such receipt.', 503: BEHIND },
      },
      async ({ id }) => {
        if (!isReceiptId(id)) return receiptMissing;
        const receipt = await findForSure(progress, () => reads.receipt.find(id), receiptMissing);
        if (isRefused(receipt)) return receipt;
        const { keyId, payload, jws, signature, verified, checkpoint, jobId, decisionId } = receipt;
        return {
          id,
          keyId,
          payload,
          jws,
          signature,
          verified,
          checkpoint,
          links: jobLinks(links, jobId, id, decisionId),
        } satisfies typeof ReceiptResponse.static;
      },
    ),
  ];
}
