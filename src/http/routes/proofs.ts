// Public proof summaries: what anyone may see of a job; and the lists of the newest records. What they leave out is said in
// the answer itself.
import { type TSchema, Type } from '@sinclair/typebox';
import type { ProofRecord } from '#projections/proof/query.ts';
import { ROUTES, type RouteFacts } from '#src/discovery/routes.ts';
import { ErrorCategory, Method } from '#src/domain/event-fields.ts';
import { LIMITS } from '#src/domain/limits.ts';
import { Closed, HttpStatus, Instant, Nullable } from '#src/domain/schema-parts.ts';
import type { ReadsOf, Settings } from '#src/http/deps.ts';
import { type Endpoint, endpoint } from '#src/http/endpoint.ts';
import { readInteger } from '#src/http/request/validation.ts';
import { jsonTextAnswer } from '#src/http/response/json.ts';
import { type Links, linksFrom, ProofLinks, proofLinks } from '#src/http/response/links.ts';
import { figure, type Moment } from '#src/http/response/response-cache.ts';
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

// ── lists of the newest records, redacted ───────────────────────────────────────────────────────────

export const RedactionPolicy = Closed({ summary: Type.String(), redactedFields: Type.Array(Type.String()) });
export type RedactionPolicy = typeof RedactionPolicy.static;

type List = {
  /** The member of the answer that holds them. */
  readonly name: string;
  readonly schema: TSchema;
  readonly limits: { readonly min: number; readonly max: number; readonly default: number };
  readonly redactionPolicy: RedactionPolicy;
  /** The newest, newest first, as they are shown. */
  find(count: number): Promise<readonly object[]>;
};

/** The answer for every length is made of one list, which is computed once. */
export function recentEndpoint(
  deps: Moment,
  route: RouteFacts,
  { name, schema, limits, redactionPolicy, find }: List,
): Endpoint {
  const query = { name: 'limit', ...limits, description: 'How many, newest first.' };
  const body = Closed({
    ok: Type.Boolean(),
    redactionPolicy: RedactionPolicy,
    [name]: Type.Array(schema),
  });
  const begin = `${JSON.stringify({ ok: true, redactionPolicy }).slice(0, -1)},${JSON.stringify(name)}:[`;
  const items = figure(deps, async (_: 'items') =>
    (await find(limits.max)).map((item) => JSON.stringify(item)),
  );
  const operation = {
    query,
    answers: { 200: ['The summaries.', body] },
    errors: { 400: 'limit is out of bounds.', 503: 'The read models are unavailable.' },
  } as const;
  return endpoint(route, operation, async ({ request }) => {
    const wanted = readInteger(request.url, query);
    if (typeof wanted !== 'number') return wanted;
    return jsonTextAnswer(`${begin}${(await items('items')).slice(0, wanted).join(',')}]}`);
  });
}
