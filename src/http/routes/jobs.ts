// Jobs and receipts on the wire. Ids of jobs are public: a job shows nothing of its target, key or payer but commitments.

import { Type } from '@sinclair/typebox';
import type { JobRecord } from '#projections/job/query.ts';
import { ROUTES } from '#src/discovery/routes.ts';
import { ErrorCategory, Method, Mode, Phase, Sent, Timings } from '#src/domain/event-fields.ts';
import { FailureReasonShown } from '#src/domain/failure-reasons.ts';
import { ID_PATTERN } from '#src/domain/ids.ts';
import { ReceiptPayload } from '#src/domain/receipt/payload.ts';
import { isRefused } from '#src/domain/refusal.ts';
import { Closed, Commitment, HttpStatus, Instant, Nullable, OneOf } from '#src/domain/schema-parts.ts';
import type { ProgressOf, ReadsOf, Settings } from '#src/http/deps.ts';
import type { Endpoint } from '#src/http/endpoint.ts';
import { findById, recordEndpoint } from '#src/http/records.ts';
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
      reason: FailureReasonShown,
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

export type JobRouteDeps = ReadsOf<'job'> & ProgressOf<'reachedHead'>;

export function loadJob({ reads, progress }: JobRouteDeps, id: string) {
  const isFinished = ({ status, receiptId }: JobRecord) => status !== 'running' && receiptId !== null;
  return findById(progress, 'job', id, reads.job.find, isFinished);
}

const jobShown = shownBy(JobResponse);

export function jobRoutes(deps: JobRouteDeps & ReadsOf<'receipt'> & Settings<'baseUrl'>): Endpoint[] {
  const { reads, progress, settings } = deps;
  const links = linksFrom(settings.baseUrl);
  return [
    recordEndpoint(ROUTES.job, 'job', JobResponse, async (id) => {
      const job = await loadJob(deps, id);
      if (isRefused(job)) return job;
      return jobShown({ ...job, links: jobLinks(links, id, job.receiptId, job.decisionId) });
    }),
    recordEndpoint(ROUTES.receipt, 'receipt', ReceiptResponse, async (id) => {
      const receipt = await findById(progress, 'receipt', id, reads.receipt.find);
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
    }),
  ];
}
