// Decisions on the wire: an action and a buyer policy in, a recorded recommendation out; and what became of it. Never the
// target, headers or body: no event holds them. Lists leave out the hashes as well, and the words of the reasons, which
// repeat the buyer's limits.
import { Type } from '@sinclair/typebox';
import type { DecisionRecord, DecisionSummary } from '#projections/decision/query.ts';
import { ACTION, PAID_ROUTES } from '#src/discovery/paid-routes.ts';
import { ROUTES } from '#src/discovery/routes.ts';
import { BuyerPolicyRequest } from '#src/domain/decision/requests.ts';
import { ErrorCategory } from '#src/domain/event-fields.ts';
import { DecisionRecorded } from '#src/domain/events/decision.ts';
import { ID_PATTERN } from '#src/domain/ids.ts';
import { WebhookRequest } from '#src/domain/job/webhook-request.ts';
import { LIMITS } from '#src/domain/limits.ts';
import { isRefused, type Refused } from '#src/domain/refusal.ts';
import { Closed, HttpStatus, Instant, Link, Nullable, OneOf } from '#src/domain/schema-parts.ts';
import type { ProgressOf, ReadsOf, Settings } from '#src/http/deps.ts';
import { bodyEndpoint, type Endpoint } from '#src/http/endpoint.ts';
import { findById, recordEndpoint } from '#src/http/records.ts';
import { withHeaderKey } from '#src/http/request/idempotency-header.ts';
import { type ParseDeps, rateRule } from '#src/http/request/parse-request.ts';
import { schemaCheck } from '#src/http/request/validation.ts';
import { type Links, linksFrom, proofLinks } from '#src/http/response/links.ts';
import type { Moment } from '#src/http/response/response-cache.ts';
import { shownBy } from '#src/http/response/shown.ts';
import type { DecideInput } from '#src/usecases/decisions/decide-webhook.ts';
import { type RedactionPolicy, recentEndpoint } from './proofs.ts';

export const DecideRequest = Closed({
  action: WebhookRequest,
  buyerPolicy: Type.Optional(BuyerPolicyRequest),
});

const { recommendation, confidence, blockingIssues, warnings, reasons, actionHash, policyHash, facts } =
  DecisionRecorded.versions[2].properties;
const { price, network, payTo, trustScore, recentFailureRate, policyVerdict } = facts.properties;

const shared = {
  decisionId: Type.String({ pattern: ID_PATTERN.decision }),
  recommendation,
  confidence,
  facts: Closed({ price, network, payTo, trustScore, recentFailureRate, policyVerdict }),
  createdAt: Instant,
  expiresAt: Instant,
  outcome: Closed(
    {
      status: OneOf('pending_execution', 'running', 'succeeded', 'failed'),
      jobId: Nullable(Type.String()),
      receiptId: Nullable(Type.String()),
      receiptVerified: Type.Boolean(),
      responseStatus: Nullable(HttpStatus),
      errorCategory: Nullable(ErrorCategory),
      attempts: Type.Integer({ minimum: 0, maximum: 3, description: 'Of a job that has ended.' }),
    },
    'Of the job that named the decision last.',
  ),
  links: Closed({
    decision: Link,
    execute: Link,
    job: Nullable(Link),
    receipt: Nullable(Link),
    verifyJob: Nullable(Link),
    verifyReceipt: Nullable(Link),
    proof: Nullable(Link),
  }),
};

export const DecisionResponse = Closed({
  ...shared,
  blockingIssues,
  warnings,
  reasons,
  actionHash: Type.String({
    ...actionHash,
    description: 'A keyed hash: it discloses nothing without the key.',
  }),
  policyHash: Type.String({ ...policyHash, description: 'SHA-256 of the buyer policy, in canonical JSON.' }),
});

const Codes = Type.Array(Closed({ code: Type.String() }));

export const DecisionSummaryShown = Closed({
  ...shared,
  blockingIssues: Codes,
  warnings: Codes,
  reasons: Codes,
  publicFieldsOnly: Type.Literal(true),
});

const decisionShown = shownBy(DecisionResponse);
const summaryShown = shownBy(DecisionSummaryShown);

const DECISION_REDACTION_POLICY: RedactionPolicy = {
  summary:
    'Public summaries show what was recommended, on which facts and how it ended, never what was to be sent, where, or under which buyer policy.',
  redactedFields: [
    'targetUrl',
    'requestHeaders',
    'requestBody',
    'idempotencyKey',
    'actionHash',
    'policyHash',
    'buyerPolicy',
    'reasonMessages',
    'payer',
  ],
};

export type DecisionDeps = ParseDeps &
  Moment &
  ReadsOf<'decision'> &
  ProgressOf<'reachedHead'> &
  Settings<'baseUrl'> & {
    /** `client`: whose look-up it is. */
    decide(input: DecideInput, client: string): Promise<DecisionRecorded | Refused>;
  };

export function decisionRoutes(deps: DecisionDeps): Endpoint[] {
  const { reads, progress, settings } = deps;
  const links = linksFrom(settings.baseUrl);
  const linked = <D extends DecisionSummary>(decision: D) => ({
    ...decision,
    links: decisionLinks(decision, links),
  });
  return [
    bodyEndpoint(deps, ROUTES.decide, {
      check: schemaCheck(DecideRequest),
      example: { action: ACTION, buyerPolicy: { maxPriceUsd: '0.01', requireReceipt: true } },
      rates: [
        rateRule('decide', LIMITS.decisionsPerMinute.max),
        rateRule('decide-daily', LIMITS.decisionsPerDay.max, 86_400_000),
      ],
      maxBytes: LIMITS.decideBodyBytes.max,
      ok: ['The decision, whatever it recommends.', DecisionResponse],
      errors: {
        400: 'The request is malformed.',
        503: 'A part of the service is unavailable, and nothing was decided: see error.code.',
      },
      async answer({ action, buyerPolicy = {} }, client, headers) {
        const keyed = withHeaderKey(action, headers, '/action');
        if (isRefused(keyed)) return keyed;
        const hasKey = keyed.idempotencyKey !== undefined;
        const decided = await deps.decide({ action, hasKey, buyerPolicy }, client);
        return isRefused(decided) ? decided : decisionShown(linked(notExecuted(decided)));
      },
    }),
    recentEndpoint(deps, ROUTES.recentDecisions, {
      name: 'decisions',
      schema: DecisionSummaryShown,
      limits: LIMITS.recentDecisions,
      redactionPolicy: DECISION_REDACTION_POLICY,
      async find(count) {
        const decisions = await reads.decision.recent(count);
        return decisions.map((decision) => summaryShown({ ...linked(decision), publicFieldsOnly: true }));
      },
    }),
    recordEndpoint(ROUTES.decision, 'decision', DecisionResponse, async (id) => {
      const decision = await findById(progress, 'decision', id, reads.decision.find, isExecuted);
      return isRefused(decision) ? decision : decisionShown(linked(decision));
    }),
  ];
}

const isExecuted = ({ outcome: { status, receiptId } }: DecisionRecord) =>
  (status === 'succeeded' || status === 'failed') && receiptId !== null;

/** No job can name the decision yet: only this caller has its id. */
function notExecuted(decision: DecisionRecorded): DecisionRecord {
  const nothing = { jobId: null, receiptId: null, responseStatus: null, errorCategory: null };
  return {
    ...decision,
    outcome: { status: 'pending_execution', receiptVerified: false, attempts: 0, ...nothing },
  };
}

function decisionLinks({ decisionId, outcome: { jobId, receiptId } }: DecisionSummary, links: Links) {
  return {
    decision: links.decision(decisionId),
    execute: links.at(PAID_ROUTES['execute/guided-webhook'].path),
    ...(jobId === null ? NO_JOB : { ...proofLinks(links, jobId, receiptId), proof: links.proof(jobId) }),
  };
}

const NO_JOB = { job: null, receipt: null, verifyJob: null, verifyReceipt: null, proof: null };
