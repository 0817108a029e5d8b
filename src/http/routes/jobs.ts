// Jobs and receipts on the wire. Ids of jobs are public: a job shows nothing of its target, key or payer but commitments.

import { Type } from '@sinclair/typebox';
import { Elysia } from 'elysia';
import type { JobRecord } from '#projections/job/query.ts';
import { ROUTES } from '#src/discovery/routes.ts';
import { ErrorCategory, Method, Mode, Phase, Sent, Timings } from '#src/domain/event-fields.ts';
import { ID_PATTERN } from '#src/domain/ids.ts';
import { ReceiptPayload } from '#src/domain/receipt/payload.ts';
import { isRefused, refused } from '#src/domain/refusal.ts';
import { Closed, Commitment, HttpStatus, Instant, Nullable } from '#src/domain/schema-parts.ts';
import type { ProgressOf, ReadsOf, ReceiptFound, Settings } from '#src/http/deps.ts';
import { describe } from '#src/http/openapi/operation.ts';
import { findForSure } from '#src/http/request/read.ts';
import { refusalAnswer } from '#src/http/response/errors.ts';
import { json } from '#src/http/response/json.ts';
import { JobLinks, jobLinks, type Links, linksFrom } from '#src/http/response/links.ts';

export const JobStatus = Type.Union([
  Type.Literal('running'),
  Type.Literal('succeeded'),
  Type.Literal('failed'),
]);

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

/** Ids that were never given out are answered without asking anyone. */
export const isJobId = (id: string) => JOB_ID.test(id);
export const isReceiptId = (id: string) => RECEIPT_ID.test(id);

const JOB_ID = new RegExp(ID_PATTERN.job);
const RECEIPT_ID = new RegExp(ID_PATTERN.receipt);

export type JobDeps = ReadsOf<'job'> & ProgressOf<'reachedHead'>;

export function loadJob({ reads, progress }: JobDeps, id: string) {
  const isFinished = ({ status, receiptId }: JobRecord) => status !== 'running' && receiptId !== null;
  return isJobId(id) ? findForSure(progress, () => reads.job.find(id), jobMissing, isFinished) : jobMissing;
}

export function jobRoutes(deps: JobDeps & ReadsOf<'receipt'> & Settings<'baseUrl'>) {
  const { reads, progress, settings } = deps;
  const links = linksFrom(settings.baseUrl);
  return new Elysia()
    .get(
      ROUTES.job.path,
      async ({ params }) => {
        const job = await loadJob(deps, params.id);
        return isRefused(job) ? refusalAnswer(job) : json(200, jobView(job, links));
      },
      describe(ROUTES.job, jobOperation),
    )
    .get(
      ROUTES.receipt.path,
      async ({ params: { id } }) => {
        const receipt = isReceiptId(id)
          ? await findForSure(progress, () => reads.receipt.find(id), receiptMissing)
          : receiptMissing;
        return isRefused(receipt) ? refusalAnswer(receipt) : json(200, receiptView(receipt, links));
      },
      describe(ROUTES.receipt, receiptOperation),
    );
}

function jobView(job: JobRecord, links: Links): typeof JobResponse.static {
  const { id, status, method, mode, attempts, responseStatus, errorCategory, decisionId, receiptId } = job;
  return {
    id,
    type: 'webhook',
    status,
    method,
    mode,
    attempts,
    attemptLog: job.attemptLog.map(attemptView),
    target: { scheme: 'https', commitment: job.target.commitment },
    requestHash: job.requestHash,
    responseStatus,
    responseOk: job.responseOk,
    responseHash: job.responseHash,
    errorCategory,
    decisionId,
    receiptId,
    refund: refundView(job.refund),
    createdAt: job.createdAt,
    updatedAt: job.updatedAt,
    links: jobLinks(links, id, receiptId, decisionId),
  };
}

/** Field by field, so that a field that is added to the record is not published automatically. */
function attemptView(entry: JobRecord['attemptLog'][number]) {
  const { number, startedAt, completedAt, phase, sent, status, errorCategory } = entry;
  const { dnsMs, connectMs, tlsMs, ttfbMs, totalMs } = entry.timings;
  const timings = { dnsMs, connectMs, tlsMs, ttfbMs, totalMs };
  return { number, startedAt, completedAt, phase, sent, status, errorCategory, timings };
}

const refundView = (refund: JobRecord['refund']) =>
  refund && {
    transaction: refund.transaction,
    verified: refund.verified,
    refundedAt: refund.refundedAt,
  };

function receiptView(receipt: ReceiptFound, links: Links): typeof ReceiptResponse.static {
  const { id, jobId, keyId, payload, jws, signature, verified, decisionId, checkpoint } = receipt;
  return {
    id,
    keyId,
    payload,
    jws,
    signature,
    verified,
    checkpoint,
    links: jobLinks(links, jobId, id, decisionId),
  };
}

const behind = 'The read models are unavailable or not up to date.';

const jobOperation = {
  id: { name: 'id', description: 'Identifier of the job.' },
  answers: { 200: ['The job.', JobResponse] } as const,
  errors: { 404: 'No such job.', 503: behind },
};

const receiptOperation = {
  id: { name: 'id', description: 'Identifier of the receipt.' },
  answers: { 200: ['The receipt.', ReceiptResponse] } as const,
  errors: { 404: 'No such receipt.', 503: behind },
};
