// Public proof summaries: what anyone may see of a job. What they leave out is said in the answer itself.

import { Type } from '@sinclair/typebox';
import { Elysia } from 'elysia';
import type { ProofRecord } from '#projections/proof/query.ts';
import { ROUTES } from '#src/discovery/routes.ts';
import { ErrorCategory, Method } from '#src/domain/event-fields.ts';
import { LIMITS } from '#src/domain/limits.ts';
import { Closed, HttpStatus, Instant, Nullable } from '#src/domain/schema-parts.ts';
import type { ReadsOf, Settings } from '#src/http/deps.ts';
import { describe } from '#src/http/openapi/operation.ts';
import { type IntegerParameter, readInteger } from '#src/http/request/validation.ts';
import { refusalAnswer } from '#src/http/response/errors.ts';
import { json } from '#src/http/response/json.ts';
import { type Links, linksFrom, ProofLinks, proofLinks } from '#src/http/response/links.ts';
import { JobStatus } from './jobs.ts';

export const ProofSummary = Closed({
  jobId: Type.String(),
  receiptId: Nullable(Type.String()),
  status: JobStatus,
  method: Method,
  attempts: Type.Integer({ minimum: 0, maximum: 3 }),
  responseStatus: Nullable(HttpStatus),
  responseOk: Type.Boolean(),
  receiptVerified: Type.Boolean(),
  errorCategory: Nullable(ErrorCategory),
  createdAt: Instant,
  updatedAt: Instant,
  publicFieldsOnly: Type.Literal(true),
  links: ProofLinks,
});

export const RedactionPolicy = Closed({ summary: Type.String(), redactedFields: Type.Array(Type.String()) });

export const REDACTION_POLICY = {
  summary:
    'Public summaries show that a call was made and how it ended, never where it went, what it carried or who paid.',
  redactedFields: [
    'targetUrl',
    'requestHeaders',
    'requestBody',
    'responseHeaders',
    'responseBody',
    'requestHash',
    'responseHash',
    'receiptSignature',
    'idempotencyKey',
    'payer',
  ],
};

export const RecentProofs = Closed({
  ok: Type.Boolean(),
  redactionPolicy: RedactionPolicy,
  proofs: Type.Array(ProofSummary),
});

const limit: IntegerParameter = {
  name: 'limit',
  ...LIMITS.recentProofs,
  description: 'How many, newest first.',
};

export function proofRoutes(deps: ReadsOf<'proof'> & Settings<'baseUrl'>) {
  const links = linksFrom(deps.settings.baseUrl);
  return new Elysia().get(
    ROUTES.recentProofs.path,
    async ({ request }) => {
      const wanted = readInteger(request.url, limit);
      if (typeof wanted !== 'number') return refusalAnswer(wanted);
      const proofs = await deps.reads.proof.recent(wanted);
      return json(200, {
        ok: true,
        redactionPolicy: REDACTION_POLICY,
        proofs: proofs.map((proof) => proofSummary(proof, links)),
      });
    },
    describe(ROUTES.recentProofs, operation),
  );
}

export function proofSummary(proof: ProofRecord, links: Links): typeof ProofSummary.static {
  const { jobId, receiptId, status, method, attempts, responseStatus, receiptVerified, errorCategory } =
    proof;
  return {
    jobId,
    receiptId,
    status,
    method,
    attempts,
    responseStatus,
    responseOk: proof.responseOk,
    receiptVerified,
    errorCategory,
    createdAt: proof.createdAt,
    updatedAt: proof.updatedAt,
    publicFieldsOnly: true,
    links: proofLinks(links, jobId, receiptId),
  };
}

const operation = {
  query: limit,
  answers: { 200: ['The summaries.', RecentProofs] } as const,
  errors: { 400: 'limit is out of bounds.', 503: 'The read models are unavailable.' },
};
