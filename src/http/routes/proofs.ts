// Public proof summaries: what anyone may see of a job. What they leave out is said in the answer itself.

import { Type } from '@sinclair/typebox';
import type { ProofRecord } from '#projections/proof/query.ts';
import { ROUTES } from '#src/discovery/routes.ts';
import { ErrorCategory, Method } from '#src/domain/event-fields.ts';
import { LIMITS } from '#src/domain/limits.ts';
import { Closed, HttpStatus, Instant, Nullable } from '#src/domain/schema-parts.ts';
import type { ReadsOf, Settings } from '#src/http/deps.ts';
import type { Endpoint } from '#src/http/endpoint.ts';
import { type Links, linksFrom, ProofLinks, proofLinks } from '#src/http/response/links.ts';
import type { Moment } from '#src/http/response/response-cache.ts';
import { shownBy } from '#src/http/response/shown.ts';
import { JobStatus } from './jobs.ts';
import { type RedactionPolicy, recentEndpoint } from './recent.ts';

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

export const REDACTION_POLICY: RedactionPolicy = {
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

export function proofRoutes(deps: Moment & ReadsOf<'proof'> & Settings<'baseUrl'>): Endpoint[] {
  const links = linksFrom(deps.settings.baseUrl);
  return [
    recentEndpoint(deps, ROUTES.recentProofs, {
      name: 'proofs',
      schema: ProofSummary,
      limits: LIMITS.recentProofs,
      redactionPolicy: REDACTION_POLICY,
      async find(count) {
        return (await deps.reads.proof.recent(count)).map((proof) => proofSummary(proof, links));
      },
    }),
  ];
}

const shown = shownBy(ProofSummary);

export const proofSummary = (proof: ProofRecord, links: Links) =>
  shown({ ...proof, links: proofLinks(links, proof.jobId, proof.receiptId) });
