// The policy check on the wire: always 200 for a well-formed request, whatever the verdict.
import { Type } from '@sinclair/typebox';
import { policyPreset } from '#src/discovery/documents/catalog.ts';
import { ACTION } from '#src/discovery/paid-routes.ts';
import { ROUTES } from '#src/discovery/routes.ts';
import { WebhookRequest } from '#src/domain/job/webhook-request.ts';
import { isRefused, type Refused } from '#src/domain/refusal.ts';
import { Closed, Count, Link, Nullable, Warnings } from '#src/domain/schema-parts.ts';
import type { Settings } from '#src/http/deps.ts';
import { bodyEndpoint, type Endpoint, PART_UNAVAILABLE } from '#src/http/endpoint.ts';
import { withHeaderKey } from '#src/http/request/idempotency-header.ts';
import { type ParseDeps, rateRule } from '#src/http/request/parse-request.ts';
import { schemaCheck } from '#src/http/request/validation.ts';
import { ErrorBody } from '#src/http/response/errors.ts';
import { linksFrom } from '#src/http/response/links.ts';
import { shownBy } from '#src/http/response/shown.ts';
import type { PolicyCheck } from '#src/usecases/decisions/check-policy.ts';

const EXECUTE_PATH = ROUTES.execute.path;

const Window = Closed({ windowMs: Count, maxRequests: Count });

export const Verdict = {
  ok: Type.Boolean(),
  allowed: Type.Boolean(),
  error: Type.Optional(ErrorBody.properties.error),
};

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

type PolicySettings = Settings<
  'baseUrl' | 'mode' | 'offer' | 'policyMode' | 'targetQuota' | 'rateLimitPerMinute'
>['settings'];

export type PolicyDeps = ParseDeps & {
  /** `client`: whose look-up it is. */
  checkPolicy(input: { readonly request: WebhookRequest }, client: string): Promise<PolicyCheck | Refused>;
  readonly settings: PolicySettings;
};

export function policyRoutes(deps: PolicyDeps): Endpoint[] {
  const { settings } = deps;
  const links = linksFrom(settings.baseUrl);
  return [
    bodyEndpoint(deps, ROUTES.checkPolicy, {
      check: schemaCheck(WebhookRequest),
      example: ACTION,
      rates: [rateRule('policy-check', settings.rateLimitPerMinute)],
      ok: ['The verdict, allowed or not.', PolicyCheckResponse],
      errors: { 400: 'The request is malformed.', 503: PART_UNAVAILABLE },
      async answer(body, client, headers) {
        const request = withHeaderKey(body, headers);
        if (isRefused(request)) return request;
        const found = await deps.checkPolicy({ request }, client);
        if (isRefused(found)) return found;
        return {
          ...verdictShown(found.verdict),
          action: {
            id: 'execute.webhook',
            method: 'POST',
            path: EXECUTE_PATH,
            paid: true,
            price: settings.offer.price,
            network: settings.offer.network,
          },
          target: found.target,
          normalized: normalizedShown(found.normalized),
          policy: policyOf(settings),
          warnings: [...found.warnings],
          next: { decide: links.at(ROUTES.decide.path), execute: links.at(EXECUTE_PATH) },
        } satisfies typeof PolicyCheckResponse.static;
      },
    }),
  ];
}

export const normalizedShown = shownBy(PolicyCheckResponse.properties.normalized);

export function verdictShown(verdict: PolicyCheck['verdict']) {
  if (!isRefused(verdict)) return { ok: true, allowed: true };
  const { refused: code, message, details } = verdict;
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
