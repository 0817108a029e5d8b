// All documents and well-known files on the wire: each is built once, from the facts of this deployment.
import { Elysia } from 'elysia';
import { JSON_TYPE } from '#src/discovery/document.ts';
import { DOCUMENTS, FILES } from '#src/discovery/documents.ts';
import type { Facts } from '#src/discovery/facts.ts';
import type { Settings } from '#src/http/deps.ts';
import { MCP_VERSIONS } from '#src/http/mcp/messages.ts';
import { describe, unlisted } from '#src/http/openapi/operation.ts';
import { documentAnswers, publisher } from '#src/http/response/conditional-get.ts';
import type { PaymentProtocol } from '#src/ports/payment-protocol.ts';

export type DeploymentFacts = Settings<
  | 'baseUrl'
  | 'mode'
  | 'offer'
  | 'policyMode'
  | 'targetQuota'
  | 'rateLimitPerMinute'
  | 'maxInFlight'
  | 'facilitatorTimeoutMs'
  | 'retentionDays'
> & {
  readonly payments: Pick<PaymentProtocol, 'askedFor'> | null;
  readonly clock: { now(): number };
};

/** How this deployment runs, as its documents show it. */
export function documentFacts({ settings, payments, clock }: DeploymentFacts): Facts {
  const { mode, offer, policyMode, targetQuota, rateLimitPerMinute, maxInFlight } = settings;
  return {
    baseUrl: settings.baseUrl.replace(/\/+$/, ''),
    generatedAt: new Date(clock.now()).toISOString(),
    mode,
    offer,
    askedFor: payments?.askedFor ?? null,
    policyMode,
    targetQuota: targetQuota && { windowMs: targetQuota.windowMs, maxRequests: targetQuota.maxRequests },
    rateLimitPerMinute,
    maxInFlight,
    facilitatorTimeoutMs: settings.facilitatorTimeoutMs,
    mcpVersions: MCP_VERSIONS,
    retentionDays: settings.retentionDays,
  };
}

export function documentRoutes(facts: Facts) {
  const publish = publisher(facts);
  const app = new Elysia();
  for (const { routes, answer, schema, build } of DOCUMENTS) {
    const serve = publish(JSON_TYPE, () => JSON.stringify(build(facts)));
    for (const route of routes) {
      const described = describe(route, { answers: documentAnswers(answer, schema) });
      app.get(route.path, serve, route.listed ? described : unlisted);
    }
  }
  for (const { route, mediaType, build } of FILES) {
    const described = describe(route, { answers: documentAnswers('The guide, as Markdown.', 'text/plain') });
    app.get(
      route.path,
      publish(mediaType, () => build(facts)),
      route.listed ? described : unlisted,
    );
  }
  return app;
}
