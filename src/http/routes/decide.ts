// A decision before paying, on the wire: an action and a buyer policy in, a recorded recommendation out. A target that
// would be refused is a decision too.
import { Type } from '@sinclair/typebox';
import { Elysia } from 'elysia';
import type { DecisionRecord } from '#projections/decision/query.ts';
import { ROUTES } from '#src/discovery/routes.ts';
import { BuyerPolicyRequest } from '#src/domain/decision/buyer-policy.ts';
import { WebhookRequest } from '#src/domain/job/webhook-request.ts';
import { LIMITS } from '#src/domain/limits.ts';
import { isRefused } from '#src/domain/refusal.ts';
import { Closed } from '#src/domain/schema-parts.ts';
import type { HttpDeps } from '#src/http/deps.ts';
import { describe } from '#src/http/openapi/operation.ts';
import { INTAKE_ERRORS, takeIn } from '#src/http/request/parse-request.ts';
import { rateRule } from '#src/http/request/rate-limit.ts';
import { schemaCheck } from '#src/http/request/schema-check.ts';
import { refusalAnswer } from '#src/http/response/errors.ts';
import { json } from '#src/http/response/json.ts';
import { linksFrom } from '#src/http/response/links.ts';
import type { Decided } from '#src/usecases/decisions/decide-webhook.ts';
import { DecisionResponse, decisionShown } from './decisions.ts';

export const DecideRequest = Closed({
  action: WebhookRequest,
  buyerPolicy: Type.Optional(BuyerPolicyRequest),
});

const RULES = {
  check: schemaCheck(DecideRequest),
  rates: [
    rateRule('decide', LIMITS.decisionsPerMinute.max),
    rateRule('decide-daily', LIMITS.decisionsPerDay.max, 86_400_000),
  ],
  maxBytes: LIMITS.decideBodyBytes.max,
};

export function decideRoutes(deps: HttpDeps) {
  const links = linksFrom(deps.settings.baseUrl);
  return new Elysia().post(
    ROUTES.decide.path,
    async ({ request }) => {
      const taken = await takeIn(deps, request, RULES);
      if (isRefused(taken)) return refusalAnswer(taken);
      const { action, buyerPolicy = {} } = taken.body;
      const decided = await deps.decide({ action, buyerPolicy });
      if (isRefused(decided)) return refusalAnswer(decided);
      return json(200, decisionShown(notExecuted(decided), links));
    },
    { parse: 'none', ...describe(ROUTES.decide, operation) },
  );
}

/** Nobody but this caller knows of it yet. */
function notExecuted({ decision }: Decided): DecisionRecord {
  const nothing = { jobId: null, receiptId: null, responseStatus: null, errorCategory: null };
  return {
    ...decision,
    outcome: { status: 'pending_execution', receiptVerified: false, attempts: 0, ...nothing },
  };
}

const operation = {
  body: DecideRequest,
  answers: { 200: ['The decision, whatever it recommends.', DecisionResponse] } as const,
  errors: {
    ...INTAKE_ERRORS,
    400: 'The request is malformed.',
    503: 'A part of the service is unavailable, and nothing was decided: see error.code.',
  },
};
