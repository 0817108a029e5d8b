// The policy check on the wire: always 200 for a well-formed request, whatever the verdict.
import { Type } from '@sinclair/typebox';
import { Elysia } from 'elysia';
import { policyPreset } from '#src/discovery/documents/policy-modes.ts';
import { ROUTES } from '#src/discovery/routes.ts';
import { WebhookRequest } from '#src/domain/job/webhook-request.ts';
import { isRefused, type Refused } from '#src/domain/refusal.ts';
import { Closed, Count, Link, Nullable } from '#src/domain/schema-parts.ts';
import type { Settings } from '#src/http/deps.ts';
import { describe } from '#src/http/openapi/operation.ts';
import { BODY_ERRORS, type ParseDeps, parseRequest, rateRule } from '#src/http/request/parse-request.ts';
import { schemaCheck } from '#src/http/request/validation.ts';
import { ErrorBody, refusalAnswer } from '#src/http/response/errors.ts';
import { json } from '#src/http/response/json.ts';
import { linksFrom } from '#src/http/response/links.ts';
import type { PolicyCheck } from '#src/usecases/decisions/check-policy.ts';

const EXECUTE_PATH = ROUTES.execute.path;

const Window = Closed({ windowMs: Count, maxRequests: Count });

/** What every answer to a free look at a target begins with. */
export const Verdict = {
  ok: Type.Boolean(),
  allowed: Type.Boolean(),
  error: Type.Optional(ErrorBody.properties.error),
};

export const Warnings = Type.Array(Closed({ code: Type.String(), message: Type.String() }));

export const PolicyShown = Closed({
  preset: Type.String(),
  mode: Type.String(),
  quota: Nullable(Window),
  rateLimit: Window,
});

export const PolicyCheckResponse = Closed({
  ...Verdict,
  action: Closed({
    id: Type.Literal('execute.webhook'),
    method: Type.Literal('POST'),
    path: Type.Literal(EXECUTE_PATH),
    paid: Type.Literal(true, { description: 'A paid action: charged where payment is enforced.' }),
    price: Type.String(),
    network: Type.String(),
  }),
  target: Closed({
    protocol: Type.Literal('https:'),
    hostname: Type.String(),
    port: Type.Integer({ minimum: 0, maximum: 65535 }),
  }),
  normalized: Closed({
    method: Type.String(),
    retry: Closed({ attempts: Count, backoffMs: Count }),
    timeoutMs: Count,
    idempotencyKeyPresent: Type.Boolean(),
    forwardedHeaders: Type.Array(Type.String()),
    strippedHeaders: Type.Array(Type.String()),
    bodyPresent: Type.Boolean(),
  }),
  policy: PolicyShown,
  warnings: Warnings,
  next: Closed({ decide: Link, execute: Link }),
});
type PolicyCheckResponse = typeof PolicyCheckResponse.static;

const check = schemaCheck(WebhookRequest);

type PolicySettings = Settings<
  'baseUrl' | 'mode' | 'offer' | 'policyMode' | 'targetQuota' | 'rateLimitPerMinute'
>['settings'];

export type PolicyDeps = ParseDeps & {
  checkPolicy(input: { readonly request: WebhookRequest }): Promise<PolicyCheck | Refused>;
  readonly settings: PolicySettings;
};

export function policyRoutes(deps: PolicyDeps) {
  const { settings } = deps;
  const rates = [rateRule('policy-check', settings.rateLimitPerMinute)];
  return new Elysia().post(
    ROUTES.checkPolicy.path,
    async ({ request }) => {
      const taken = await parseRequest(deps, request, { rates, check });
      if (isRefused(taken)) return refusalAnswer(taken);
      const found = await deps.checkPolicy({ request: taken.body });
      if (isRefused(found)) return refusalAnswer(found);
      return json(200, responseOf(found, settings));
    },
    { parse: 'none', ...describe(ROUTES.checkPolicy, operation) },
  );
}

function responseOf(found: PolicyCheck, settings: PolicySettings): PolicyCheckResponse {
  const { verdict, warnings } = found;
  const links = linksFrom(settings.baseUrl);
  return {
    ...verdictShown(verdict),
    action: {
      id: 'execute.webhook',
      method: 'POST',
      path: EXECUTE_PATH,
      paid: true,
      price: settings.offer.price,
      network: settings.offer.network,
    },
    ...requestShown(found),
    policy: policyOf(settings),
    warnings: [...warnings],
    next: { decide: links.at(ROUTES.decide.path), execute: links.at(EXECUTE_PATH) },
  };
}

/** The request as an execution would read it: no header's value, no body. */
export function requestShown({ target, normalized }: Pick<PolicyCheck, 'target' | 'normalized'>) {
  const { forwardedHeaders, strippedHeaders } = normalized;
  return {
    target,
    normalized: {
      ...normalized,
      forwardedHeaders: [...forwardedHeaders],
      strippedHeaders: [...strippedHeaders],
    },
  };
}

export function verdictShown(verdict: PolicyCheck['verdict']) {
  if (verdict.allowed) return { ok: true, allowed: true };
  const { refused: code, message, details } = verdict.refusal;
  const error = { code, message, ...(details === undefined ? {} : { details }) };
  return { ok: false, allowed: false, error };
}

export function policyOf({
  policyMode: mode,
  targetQuota,
  rateLimitPerMinute,
}: Pick<PolicySettings, 'policyMode' | 'targetQuota' | 'rateLimitPerMinute'>) {
  return {
    preset: policyPreset(mode),
    mode,
    quota: targetQuota && { windowMs: targetQuota.windowMs, maxRequests: targetQuota.maxRequests },
    rateLimit: { windowMs: 60_000, maxRequests: rateLimitPerMinute },
  };
}

const operation = {
  body: WebhookRequest,
  answers: { 200: ['The verdict, allowed or not.', PolicyCheckResponse] } as const,
  errors: {
    ...BODY_ERRORS,
    400: 'The request is malformed.',
    503: 'A part of the service is unavailable: see error.code.',
  },
};
