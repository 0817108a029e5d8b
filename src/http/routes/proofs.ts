// Public proof summaries: what anyone may see of a job. What they leave out is said in the answer itself.

import { Type } from '@sinclair/typebox';
import type { ProofRecord } from '#projections/proof/query.ts';
import { ROUTES } from '#src/discovery/routes.ts';
import { ErrorCategory, Method } from '#src/domain/event-fields.ts';
import { LIMITS } from '#src/domain/limits.ts';
import { Closed, HttpStatus, Instant, Nullable } from '#src/domain/schema-parts.ts';
import type { ReadsOf, Settings } from '#src/http/deps.ts';
import { type Endpoint, endpoint } from '#src/http/endpoint.ts';
import { type IntegerParameter, readInteger } from '#src/http/request/validation.ts';
import { jsonText } from '#src/http/response/json.ts';
import { type Links, linksFrom, ProofLinks, proofLinks } from '#src/http/response/links.ts';
import { listFigure, type Moment } from '#src/http/response/response-cache.ts';
import { shownBy } from '#src/http/response/shown.ts';
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

const RecentProofs = Closed({
  ok: Type.Boolean(),
  redactionPolicy: RedactionPolicy,
  proofs: Type.Array(ProofSummary),
});

const limit: IntegerParameter = {
  name: 'limit',
  ...LIMITS.recentProofs,
  description: 'How many, newest first.',
};

export function proofRoutes(deps: Moment & ReadsOf<'proof'> & Settings<'baseUrl'>): Endpoint[] {
  const links = linksFrom(deps.settings.baseUrl);
  const newest = listFigure(deps, {
    head: { ok: true, redactionPolicy: REDACTION_POLICY } satisfies Omit<
      typeof RecentProofs.static,
      'proofs'
    >,
    name: 'proofs',
    async find() {
      const proofs = await deps.reads.proof.recent(LIMITS.recentProofs.max);
      return proofs.map((proof) => proofSummary(proof, links));
    },
  });
  const operation = {
    query: limit,
    answers: { 200: ['The summaries.', RecentProofs] },
    errors: { 400: 'limit is out of bounds.', 503: 'The read models are unavailable.' },
  } as const;
  return [
    endpoint(ROUTES.recentProofs, operation, async ({ request }) => {
      const wanted = readInteger(request.url, limit);
      return typeof wanted === 'number' ? jsonText(await newest(wanted)) : wanted;
    }),
  ];
}

const shown = shownBy(ProofSummary);

export const proofSummary = (proof: ProofRecord, links: Links) =>
  shown({ ...proof, links: proofLinks(links, proof.jobId, proof.receiptId) });
