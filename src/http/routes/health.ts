// For operators and load balancers: health, which is 503 only if no call can be executed, and figures for Prometheus.
import { Type } from '@sinclair/typebox';
import { ROUTES } from '#src/discovery/routes.ts';
import { Mode } from '#src/domain/event-fields.ts';
import { SERVICE } from '#src/domain/limits.ts';
import type { HealthReport } from '#src/domain/monitoring/health.ts';
import { type WitnessesStatus, witnessesShown } from '#src/domain/monitoring/witnesses.ts';
import { Closed, Instant, Nullable } from '#src/domain/schema-parts.ts';
import type { Settings } from '#src/http/deps.ts';
import { type Endpoint, endpoint } from '#src/http/endpoint.ts';
import { contextOf, isLoopbackClient } from '#src/http/request/request-context.ts';
import { routeNotFound } from '#src/http/response/errors.ts';
import { json } from '#src/http/response/json.ts';
import { shownBy } from '#src/http/response/shown.ts';
import type { Exposition } from '#src/ports/telemetry.ts';

const Part = Closed({
  ok: Type.Boolean(),
  reason: Type.Optional(Type.String({ description: 'A code; absent where the part is ok.' })),
  message: Type.Optional(Type.String({ description: 'What it means, and what to do.' })),
});

export const WitnessesShown = Closed(
  {
    configured: Type.Integer({ minimum: 1, description: 'Witnesses that this relay asks.' }),
    quorum: Type.String({ description: 'The rule that they have to satisfy, as the policy names it.' }),
    lastCosignedAt: Nullable(Instant),
    lagSeconds: Type.Integer({
      minimum: 0,
      description: 'How long a checkpoint has waited for a quorum; 0: the newest one has it.',
    }),
    refusing: Type.Array(
      Closed({
        name: Type.String(),
        reason: Type.String({ description: 'A code; WITNESSING.md has what each means.' }),
      }),
      {
        description: 'Witnesses that have not cosigned the last checkpoint that they were given.',
      },
    ),
  },
  'Witnesses of the transparency log; absent where it is unwitnessed.',
);

export const HealthResponse = Closed({
  ok: Type.Boolean({
    description: 'Every part is ok. A part that calls do not need does not make the status 503.',
  }),
  service: Type.String(),
  version: Type.String(),
  mode: Mode,
  egressExemption: Type.Optional(Type.Literal(true)),
  checks: Closed({
    eventLog: Part,
    signingKey: Part,
    transparencyLog: Part,
    readModels: Part,
    projections: Part,
    facilitator: Nullable(Part),
    chain: Nullable(Part),
    schedules: Nullable(Part),
  }),
  witnesses: Type.Optional(WitnessesShown),
});

export type HealthDeps = Settings<'mode' | 'egressExemption' | 'metricsPublic'> & {
  /** Never throws. */
  health(): Promise<HealthReport>;
  /** What was found wrong with these parts lately, in sentences: without asking them again. */
  wrong(): readonly string[];
  /** null: the transparency log has none. Never throws. */
  witnesses(): WitnessesStatus | null;
  readonly operators: {
    /** Never throws, whatever is unavailable. */
    exposition(): Promise<Exposition>;
  };
};

export function healthRoutes({ health, witnesses, settings, operators }: HealthDeps): Endpoint[] {
  const { mode, egressExemption, metricsPublic } = settings;
  const { name: service, version } = SERVICE;
  return [
    endpoint(
      ROUTES.health,
      {
        answers: {
          200: ['The service is running.', HealthResponse],
          503: ['No call can be executed: see the parts that are not ok.', HealthResponse],
        },
        errors: { 400: 'The Host header is malformed.' },
      },
      async () => {
        const { ok, executes, checks: found } = await health();
        const checks = checksShown(found);
        const exemption = egressExemption ? { egressExemption: true as const } : {};
        const witnessed = witnesses();
        const body: typeof HealthResponse.static = {
          ok,
          service,
          version,
          mode,
          ...exemption,
          checks,
          ...(witnessed === null ? {} : { witnesses: witnessesShown(witnessed) }),
        };
        return json(executes ? 200 : 503, body);
      },
    ),
    endpoint(ROUTES.live, null, () => json(200, { ok: true, service, version })),
    endpoint(ROUTES.metrics, null, async ({ request }) => {
      if (!metricsPublic && !isFromThisMachine(request)) return routeNotFound();
      const { contentType, text } = await operators.exposition();
      return new Response(text, { headers: { 'content-type': contentType } });
    }),
  ];
}

const checksShown = shownBy(HealthResponse.properties.checks);

/** Headers by which proxies name their caller, and those that browsers add to the requests of a page. */
const ADDED = /^(?:forwarded|via|x-forwarded-.+|x-real-ip|.+-client-ip|cf-connecting-ip|origin|referer)$/;
/** Sec-Fetch-Site of a request that a page of another site makes (W3C Fetch Metadata, 2.3). */
const FOREIGN = /^(?:cross|same)-site$/;

/**
 * Without METRICS_PUBLIC, metrics are served to this machine only: not to what a proxy on it forwards, nor to a page in its
 * browser (every answer here is open to pages of any origin).
 */
function isFromThisMachine(request: Request): boolean {
  const { headers } = request;
  if (!isLoopbackClient(contextOf(request).client) || [...headers.keys()].some((name) => ADDED.test(name)))
    return false;
  if (FOREIGN.test(headers.get('sec-fetch-site') ?? '')) return false;
  // A proxy that adds no header, or a page whose name resolves to this address, still sends another Host.
  const hostname = URL.parse(`http://${headers.get('host') ?? 'localhost'}/`)?.hostname ?? '';
  return hostname === 'localhost' || isLoopbackClient(hostname.replace(/^\[(.*)\]$/, '$1'));
}
