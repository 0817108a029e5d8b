// All documents and well-known files on the wire: each is built once, from the facts of this deployment.
import { type TSchema, Type } from '@sinclair/typebox';
import { DOCUMENTS, FILES } from '#src/discovery/documents.ts';
import type { Deployment, Facts } from '#src/discovery/facts.ts';
import { UNKNOWN_RUN } from '#src/discovery/paid-routes.ts';
import { JSON_TYPE, ROUTES, type RouteFacts } from '#src/discovery/routes.ts';
import { type Endpoint, endpoint } from '#src/http/endpoint.ts';
import { MCP_VERSIONS } from '#src/http/mcp/endpoint.ts';
import { documentAnswers, publisher } from '#src/http/response/conditional-get.ts';
import { iso } from '#src/lib/iso.ts';
import type { PaymentProtocol } from '#src/ports/payment-protocol.ts';

export type DeploymentFacts = {
  readonly settings: Deployment;
  readonly payments: Pick<PaymentProtocol, 'askedFor' | 'askedForRun'> | null;
  readonly clock: { now(): number };
};

/** How this deployment runs, as its documents show it. */
export function documentFacts({ settings, payments, clock }: DeploymentFacts): Facts {
  const { baseUrl, targetQuota, ...shown } = settings;
  return {
    ...shown,
    baseUrl: baseUrl.replace(/\/+$/, ''),
    generatedAt: iso(clock.now()),
    askedFor: payments?.askedFor ?? null,
    askedForSchedule: (settings.schedules && payments?.askedForRun(UNKNOWN_RUN)) ?? null,
    targetQuota: targetQuota && { windowMs: targetQuota.windowMs, maxRequests: targetQuota.maxRequests },
    mcpVersions: MCP_VERSIONS,
  };
}

/** `openapi`: the interface description, which is built from all endpoints, these among them. */
export function documentRoutes(facts: Facts, openapi: () => string): Endpoint[] {
  const publish = publisher(facts);
  const documents = DOCUMENTS.flatMap(({ routes, schema, build }) => {
    const serve = publish(routes[0].mediaType, () => JSON.stringify(build(facts)));
    return routes.map((route) => endpoint(route, operationOf(route, schema), serve));
  });
  const files = FILES.map(({ route, build }) =>
    endpoint(
      route,
      operationOf(route, 'text/plain'),
      publish(route.mediaType, () => build(facts)),
    ),
  );
  const description = endpoint(
    ROUTES.openapi,
    operationOf(ROUTES.openapi, Type.Object({ openapi: Type.Literal('3.1.0') })),
    publish(JSON_TYPE, openapi),
  );
  return [...documents, ...files, description];
}

const operationOf = ({ listed }: RouteFacts, body: TSchema | string) =>
  listed ? { answers: documentAnswers('The document.', body) } : null;
