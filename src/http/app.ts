// The HTTP application: route groups behind one pipeline. It decides the statuses and shapes of answers; the use cases
// decide what is true and what may happen, the runtime adapters own the sockets.
import { type AnyElysia, Elysia } from 'elysia';
import { WebStandardAdapter } from 'elysia/adapter/web-standard';
import { refused } from '#src/domain/refusal.ts';
import { type McpDeps, mcpRoutes } from '#src/http/mcp/endpoint.ts';
import { docsPageRoutes } from '#src/http/pages/docs-page.ts';
import { frontPageRoutes } from '#src/http/pages/front-page.ts';
import { isBrowser, nothingHere, pagesFrom } from '#src/http/pages/page.ts';
import { type ProofPageDeps, proofPageRoutes } from '#src/http/pages/proof-page.ts';
import { statusPageRoutes } from '#src/http/pages/status-page.ts';
import { verifyPageRoutes } from '#src/http/pages/verify-page.ts';
import { type ReadLimitDeps, type ReadLimits, readLimits } from '#src/http/read-limits.ts';
import { type Fetch, type PipelineDeps, pipeline, type Routed } from '#src/http/request/pipeline.ts';
import { contextOf } from '#src/http/request/request-context.ts';
import { failureLog, faultAnswer, refusalAnswer, routeNotFound } from '#src/http/response/errors.ts';
import { canaryRoutes } from '#src/http/routes/canary.ts';
import { type DecisionDeps, decisionRoutes } from '#src/http/routes/decisions.ts';
import { type DeploymentFacts, documentFacts, documentRoutes } from '#src/http/routes/documents.ts';
import { type ExecuteRouteDeps, executeRoutes } from '#src/http/routes/execute.ts';
import { type HealthDeps, healthRoutes } from '#src/http/routes/health.ts';
import { jobRoutes } from '#src/http/routes/jobs.ts';
import { type KeyDeps, keyRoutes } from '#src/http/routes/keys.ts';
import { type LibraryDeps, libraryRoutes } from '#src/http/routes/library.ts';
import {
  monitoringRoutes,
  monitoringSummaries,
  type SummaryDeps,
  type TrustDeps,
  trustRoutes,
} from '#src/http/routes/monitoring.ts';
import { type PlanningDeps, planningRoutes } from '#src/http/routes/planning.ts';
import { type PolicyDeps, policyRoutes } from '#src/http/routes/policy.ts';
import { proofRoutes } from '#src/http/routes/proofs.ts';
import { type SchedulesDeps, scheduleRoutes } from '#src/http/routes/schedules.ts';
import { type TransparencyRouteDeps, transparencyRoutes } from '#src/http/routes/transparency.ts';
import { type StandingDeps, verifyRoutes } from '#src/http/routes/verify.ts';
import type { ReadsOf } from './deps.ts';
import type { Endpoint } from './endpoint.ts';
import { openapiText } from './openapi.ts';
import { type ProcessMeter, processMeter } from './request/instrumentation.ts';
import { SCHEDULE_SCHEMA_NAMES, SCHEMA_NAMES } from './schema-names.ts';

/** What each group of routes is given. */
export type AppDeps = {
  /** Before all routes. */
  readonly request: PipelineDeps & ReadLimitDeps;
  readonly execute: ExecuteRouteDeps & DeploymentFacts & McpDeps;
  readonly decisions: DecisionDeps & PolicyDeps & PlanningDeps;
  readonly reads: StandingDeps & SummaryDeps & TrustDeps & ProofPageDeps & ReadsOf<'receipt'>;
  readonly log: TransparencyRouteDeps & KeyDeps & LibraryDeps;
  readonly health: HealthDeps;
  /** Absent: paid schedules are off. */
  readonly schedules?: SchedulesDeps;
};

export type App = {
  readonly fetch: Fetch;
  /** What is served, without OPTIONS, HEAD and the refusals of other methods. */
  readonly routes: RouteMethods;
};

export function createApp(deps: AppDeps): App {
  const meter = processMeter(deps.request.clock);
  const route: Routed = (request) => router.fetch(request);
  const limits = readLimits(deps.request);
  const endpoints = endpointsOf(deps, limits, meter, route);
  const logFailure = failureLog(deps.request);
  const pages = pagesFrom(deps.reads.settings.baseUrl);
  // One code path on both runtimes: not the Bun adapter that Elysia picks under Bun.
  const router = new Elysia({ adapter: WebStandardAdapter, normalize: false, strictPath: true }).onError(
    ({ code, error, request }) => {
      if (code === 'NOT_FOUND') {
        const paced = limits.pace();
        const missing = () => (isBrowser(request) ? nothingHere(pages) : routeNotFound());
        return paced instanceof Promise ? paced.then(missing) : missing();
      }
      logFailure(contextOf(request).id, error);
      return faultAnswer(error);
    },
  );
  // Before the routes: it runs for those that are added after it.
  router.onTransform(({ request, route }) => {
    contextOf(request).route = route;
  });
  for (const endpoint of endpoints) serve(router, endpoint);
  const routes = endpoints.map(({ route: { method, path } }) => ({ method, path }));
  refuseOtherMethods(router, routes);
  router.compile();
  return { fetch: pipeline(deps.request, meter, route), routes };
}

function endpointsOf(
  { execute, decisions, reads, log, health, schedules }: AppDeps,
  { counted, paced }: ReadLimits,
  meter: ProcessMeter,
  route: Routed,
): readonly Endpoint[] {
  const summaries = monitoringSummaries(reads, meter);
  const facts = documentFacts(execute);
  const openapi = () =>
    openapiText(endpoints, facts, {
      ...SCHEMA_NAMES,
      ...(schedules === undefined ? {} : SCHEDULE_SCHEMA_NAMES),
    });
  const endpoints: Endpoint[] = [
    ...executeRoutes(execute),
    ...counted(decisionRoutes(decisions)),
    ...policyRoutes(decisions),
    ...counted(jobRoutes(reads)),
    ...counted(verifyRoutes(reads)),
    ...counted(proofRoutes(reads)),
    ...counted(proofPageRoutes(reads)),
    ...counted(monitoringRoutes(summaries)),
    ...counted(trustRoutes(reads)),
    ...healthRoutes(health),
    ...paced(keyRoutes(log)),
    ...planningRoutes(decisions),
    ...(schedules === undefined ? [] : scheduleRoutes({ ...execute, ...schedules })),
    ...paced(canaryRoutes(decisions)),
    ...paced(documentRoutes(facts, openapi)),
    ...counted(frontPageRoutes(reads, facts)),
    ...counted(statusPageRoutes({ ...reads, ...health }, facts, summaries)),
    ...paced(verifyPageRoutes(reads, facts)),
    ...paced(libraryRoutes(log, facts)),
    ...counted(transparencyRoutes(log)),
    ...paced(docsPageRoutes(facts, reads, () => endpoints)),
  ];
  endpoints.push(...mcpRoutes(execute, facts, endpoints, route));
  return endpoints;
}

function serve(router: AnyElysia, { route: { method, path }, answer }: Endpoint): void {
  const [, name] = /:(\w+)/.exec(path) ?? [];
  const parameter = (params: Readonly<Record<string, string>>) =>
    name === undefined ? '' : (params[name] ?? '');
  if (method === 'GET') {
    router.get(path, ({ request, params }) => answer({ request, id: parameter(params) }));
  } else if (method === 'DELETE') {
    router.delete(path, ({ request, params }) => answer({ request, id: parameter(params) }), {
      parse: 'none',
    });
  } else {
    // The endpoint reads the body.
    router.post(path, ({ request, params }) => answer({ request, id: parameter(params) }), { parse: 'none' });
  }
}

export type RouteMethods = readonly { readonly method: string; readonly path: string }[];

/** 405 with Allow for methods that a path does not serve, and OPTIONS. HEAD is answered by GET's route; see pipeline.ts. */
function refuseOtherMethods(router: AnyElysia, routes: RouteMethods): void {
  for (const path of new Set(routes.map((route) => route.path))) {
    const methods = routes.filter((route) => route.path === path).map(({ method }) => method);
    const allow = [...methods, ...(methods.includes('GET') ? ['HEAD'] : []), 'OPTIONS'].join(', ');
    router.options(path, () => preflight(allow));
    router.all(path, () => wrongMethod(allow), { parse: 'none' });
  }
}

function wrongMethod(allow: string): Response {
  const response = refusalAnswer(refused('method_not_allowed', `This path answers ${allow}.`));
  response.headers.set('allow', allow);
  return response;
}

function preflight(allow: string): Response {
  return new Response(null, {
    status: 204,
    headers: {
      allow,
      'access-control-allow-methods': allow,
      'access-control-allow-headers': REQUEST_HEADERS,
      'access-control-max-age': '7200',
    },
  });
}

/** What routes read, and what clients send although no route reads it: browsers would not send the request without them. */
const REQUEST_HEADERS = [
  ...[
    'content-type',
    'accept',
    'authorization',
    'idempotency-key',
    'if-none-match',
    'cache-control',
    'prefer',
  ],
  ...['x-request-id', 'traceparent', 'tracestate', 'baggage'],
  ...['mcp-protocol-version', 'mcp-method', 'mcp-name', 'mcp-session-id', 'last-event-id'],
  // x402 clients send the last one with a request, where it has no meaning.
  ...['payment-signature', 'x-payment', 'access-control-expose-headers'],
].join(', ');
