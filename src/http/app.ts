// The HTTP room put together: route groups behind one front door. Decides statuses and shapes of answers;
// leaves what is true and what may happen to the use cases, sockets to the runtime adapters.
import { type AnyElysia, Elysia } from 'elysia';
import { WebStandardAdapter } from 'elysia/adapter/web-standard';
import { mcpRoutes } from '#src/http/mcp/server.ts';
import { openapiRoutes, openapiText } from '#src/http/openapi/document.ts';
import { badgeRoutes } from '#src/http/pages/badge.ts';
import { docsPageRoutes } from '#src/http/pages/docs-page.ts';
import { frontPageRoutes } from '#src/http/pages/front-page.ts';
import { proofPageRoutes } from '#src/http/pages/proof-page.ts';
import { statusPageRoutes } from '#src/http/pages/status-page.ts';
import { verifyPageRoutes } from '#src/http/pages/verify-page.ts';
import { methodRoutes, type RouteMethods } from '#src/http/request/methods.ts';
import { type Fetch, frontDoor, type Routed } from '#src/http/request/pipeline.ts';
import { callOf } from '#src/http/request/request-context.ts';
import { failureLog } from '#src/http/response/error-log.ts';
import { faultAnswer, routeNotFound } from '#src/http/response/errors.ts';
import { canaryRoutes } from '#src/http/routes/canary.ts';
import { decideRoutes } from '#src/http/routes/decide.ts';
import { decisionRoutes } from '#src/http/routes/decisions.ts';
import { didRoutes } from '#src/http/routes/did.ts';
import { documentFacts, documentRoutes } from '#src/http/routes/documents.ts';
import { executeRoutes } from '#src/http/routes/execute.ts';
import { guidedRoutes } from '#src/http/routes/guided.ts';
import { handoffRoutes } from '#src/http/routes/handoff.ts';
import { healthRoutes } from '#src/http/routes/health.ts';
import { jobRoutes } from '#src/http/routes/jobs.ts';
import { keyRoutes } from '#src/http/routes/keys.ts';
import { metricsRoutes } from '#src/http/routes/metrics.ts';
import { monitoringRoutes, monitoringSummaries } from '#src/http/routes/monitoring.ts';
import { policyRoutes } from '#src/http/routes/policy.ts';
import { proofRoutes } from '#src/http/routes/proofs.ts';
import { scheduleRoutes } from '#src/http/routes/schedules.ts';
import { transparencyRoutes } from '#src/http/routes/transparency.ts';
import { trustRoutes } from '#src/http/routes/trust.ts';
import { verifyRoutes } from '#src/http/routes/verify.ts';
import type { HttpDeps } from './deps.ts';
import { observed } from './instrumentation.ts';
import { type ProcessMeter, processMetrics } from './process-metrics.ts';

export type App = {
  readonly fetch: Fetch;
  /** What is served, but for OPTIONS, HEAD and the refusals of other methods. */
  readonly routes: RouteMethods;
};

export function createApp(deps: HttpDeps): App {
  const meter = processMetrics(deps.clock);
  const route: Routed = async (request) => router.fetch(request);
  const groups = routeGroups(deps, meter, route);
  const tell = failureLog(deps);
  // One code path on both runtimes: not the Bun adapter that Elysia picks under Bun.
  const router = new Elysia({ adapter: WebStandardAdapter, normalize: false, strictPath: true }).onError(
    ({ code, error, request }) => errorAnswer(tell, code, error, request),
  );
  // Before the groups: it runs for the routes that come after it.
  router.onTransform(({ request, route }) => {
    callOf(request).seen.route = route;
  });
  for (const group of groups) router.use(group);
  const routes = groups.flatMap((group) => group.routes.map(({ method, path }) => ({ method, path })));
  router.use(methodRoutes(routes));
  router.compile();
  const answer = frontDoor(deps, route);
  return { fetch: observed(deps, meter, answer), routes };
}

function routeGroups(deps: HttpDeps, meter: ProcessMeter, route: Routed): readonly AnyElysia[] {
  const summaries = monitoringSummaries(deps, meter);
  const { reads, progress, logger, clock, transparency, verifyScript } = deps;
  const facts = documentFacts(deps);
  const description = () => openapiText(groups, facts);
  const groups: readonly AnyElysia[] = [
    executeRoutes(deps),
    guidedRoutes(deps),
    decideRoutes(deps),
    decisionRoutes(deps),
    policyRoutes(deps),
    jobRoutes(deps),
    verifyRoutes(deps),
    proofRoutes(deps),
    proofPageRoutes(deps),
    badgeRoutes(deps),
    monitoringRoutes(summaries),
    trustRoutes(deps),
    healthRoutes(deps),
    metricsRoutes(deps),
    keyRoutes(deps),
    didRoutes(deps),
    handoffRoutes(deps),
    scheduleRoutes(deps),
    canaryRoutes(deps),
    documentRoutes(facts),
    mcpRoutes(deps, route),
    frontPageRoutes({ facts, reads, progress, logger, clock }),
    statusPageRoutes({ facts, progress, clock }, summaries),
    verifyPageRoutes({ facts, transparency, verifyScript }),
    transparencyRoutes(deps),
    docsPageRoutes(facts, description),
    openapiRoutes(facts, description),
  ];
  return groups;
}

function errorAnswer(
  tell: ReturnType<typeof failureLog>,
  code: unknown,
  error: unknown,
  request: Request,
): Response {
  if (code === 'NOT_FOUND') return routeNotFound();
  tell(callOf(request).id, error);
  return faultAnswer(error);
}
