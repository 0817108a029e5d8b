// For operators and load balancers: health, which is 503 only if the event log is unavailable (nothing can be executed
// then), and figures for Prometheus.
import { Type } from '@sinclair/typebox';
import { Elysia } from 'elysia';
import { ROUTES } from '#src/discovery/routes.ts';
import { Mode } from '#src/domain/event-fields.ts';
import { SERVICE } from '#src/domain/limits.ts';
import { Closed, Nullable } from '#src/domain/schema-parts.ts';
import type { Settings } from '#src/http/deps.ts';
import { describe, unlisted } from '#src/http/openapi/operation.ts';
import { contextOf, isLoopback } from '#src/http/request/request-context.ts';
import { routeNotFound } from '#src/http/response/errors.ts';
import { json } from '#src/http/response/json.ts';
import type { Exposition } from '#src/ports/telemetry.ts';

const Part = Closed({ ok: Type.Boolean() });

export const HealthResponse = Closed({
  ok: Type.Boolean({
    description: 'Every part is ok. One part that is not ok does not alone make the status 503.',
  }),
  service: Type.String(),
  version: Type.String(),
  mode: Mode,
  egressExemption: Type.Optional(Type.Literal(true)),
  checks: Closed({
    eventLog: Part,
    readModels: Part,
    projections: Part,
    facilitator: Nullable(Part),
  }),
});

export type HealthFacts = {
  readonly eventLog: { readonly ok: boolean };
  readonly readModels: { readonly ok: boolean };
  readonly projections: { readonly ok: boolean };
  /** null: none is needed (demo mode). */
  readonly facilitator: { readonly ok: boolean } | null;
};

export type HealthDeps = Settings<'mode' | 'egressExemption' | 'metricsPublic'> & {
  /** Never throws. */
  health(): Promise<HealthFacts>;
  readonly operators: {
    /** Never throws, whatever is unavailable. */
    exposition(): Promise<Exposition>;
  };
};

export function healthRoutes(deps: HealthDeps) {
  const { settings, operators } = deps;
  return new Elysia()
    .get(
      ROUTES.health.path,
      async () => {
        const facts = await deps.health();
        return json(facts.eventLog.ok ? 200 : 503, responseOf(facts, settings));
      },
      describe(ROUTES.health, operation),
    )
    .get(
      ROUTES.live.path,
      () => json(200, { ok: true, service: SERVICE.name, version: SERVICE.version }),
      unlisted,
    )
    .get(
      ROUTES.metrics.path,
      async ({ request }) => {
        if (!settings.metricsPublic && !isFromThisMachine(request)) return routeNotFound();
        const { contentType, text } = await operators.exposition();
        return new Response(text, { headers: { 'content-type': contentType } });
      },
      unlisted,
    );
}

function responseOf(
  { eventLog, readModels, projections, facilitator }: HealthFacts,
  { mode, egressExemption }: HealthDeps['settings'],
): typeof HealthResponse.static {
  const part = ({ ok }: { readonly ok: boolean }) => ({ ok });
  return {
    ok: [eventLog, readModels, projections, facilitator].every((fact) => fact?.ok !== false),
    service: SERVICE.name,
    version: SERVICE.version,
    mode,
    ...(egressExemption ? { egressExemption: true as const } : {}),
    checks: {
      eventLog: part(eventLog),
      readModels: part(readModels),
      projections: part(projections),
      facilitator: facilitator && part(facilitator),
    },
  };
}

const operation = {
  answers: {
    200: ['The service is running.', HealthResponse],
    503: ['The event log is gone: nothing can be executed.', HealthResponse],
  } as const,
};

/** Headers by which proxies name their caller (RFC 7239, RFC 9110 §7.6.3, and custom). */
const OF_PROXIES = [
  'forwarded',
  'x-forwarded-for',
  'x-forwarded-host',
  'x-forwarded-proto',
  'x-forwarded-port',
  'x-forwarded-server',
  'x-real-ip',
  'x-client-ip',
  'x-cluster-client-ip',
  'true-client-ip',
  'cf-connecting-ip',
  'fastly-client-ip',
  'via',
];

/** Headers that browsers add to the requests of a page (fetch standard): every answer here is open to pages of any origin. */
const OF_PAGES = ['origin', 'referer', 'sec-fetch-site'];

/**
 * Without METRICS_PUBLIC, metrics are served to this machine only: not to what a proxy on it forwards, nor to a page in its
 * browser.
 */
function isFromThisMachine(request: Request): boolean {
  const { headers } = request;
  if (!isLoopback(contextOf(request).client)) return false;
  if ([...OF_PROXIES, ...OF_PAGES].some((name) => headers.has(name))) return false;
  // A proxy that adds no header, or a page whose name resolves to this address, still sends another Host.
  const host = headers.get('host');
  return host === null || isLoopbackHost(host);
}

function isLoopbackHost(host: string): boolean {
  const url = `http://${host}/`;
  if (!URL.canParse(url)) return false;
  const { hostname } = new URL(url);
  return hostname === 'localhost' || isLoopback(hostname.replace(/^\[(.*)\]$/, '$1'));
}
