// Proof reports on the wire: every check that the one verifier made.
import { Type } from '@sinclair/typebox';
import { Elysia } from 'elysia';
import { DONE_WHEN } from '#src/discovery/guidance.ts';
import { ROUTES } from '#src/discovery/routes.ts';
import type { VerificationReport } from '#src/domain/receipt/verify.ts';
import { isRefused, type Refused } from '#src/domain/refusal.ts';
import { Closed, Nullable } from '#src/domain/schema-parts.ts';
import type { HttpDeps } from '#src/http/deps.ts';
import { describe } from '#src/http/openapi/operation.ts';
import { findForSure } from '#src/http/request/read.ts';
import { refusalAnswer } from '#src/http/response/errors.ts';
import { json } from '#src/http/response/json.ts';
import { isJobId, isReceiptId, jobMissing, receiptMissing } from './jobs.ts';

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

export function verifyJobForSure(deps: HttpDeps, id: string) {
  return isJobId(id) ? findForSure(deps.progress, () => deps.verifyJob(id), jobMissing) : jobMissing;
}

export function verifyReceiptForSure(deps: HttpDeps, id: string) {
  return isReceiptId(id)
    ? findForSure(deps.progress, () => deps.verifyReceipt(id), receiptMissing)
    : receiptMissing;
}

export function verifyRoutes(deps: HttpDeps) {
  return new Elysia()
    .get(
      ROUTES.verifyJob.path,
      async ({ params }) => answerOf(await verifyJobForSure(deps, params.id)),
      describe(ROUTES.verifyJob, jobOperation),
    )
    .get(
      ROUTES.verifyReceipt.path,
      async ({ params }) => answerOf(await verifyReceiptForSure(deps, params.id)),
      describe(ROUTES.verifyReceipt, receiptOperation),
    );
}

function answerOf(report: VerificationReport | Refused): Response {
  return isRefused(report) ? refusalAnswer(report) : json(200, report);
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
