// The HTTP room put together: route groups behind one front door. Decides statuses and shapes of answers;
// leaves what is true and what may happen to the use cases, sockets to the runtime adapters.
import { type AnyElysia, Elysia } from 'elysia';
import { WebStandardAdapter } from 'elysia/adapter/web-standard';
import { badgeRoutes } from './badge.ts';
import { callOf } from './call.ts';
import { canaryRoutes } from './canary.ts';
import { decideRoutes } from './decide.ts';
import { decisionRoutes } from './decisions.ts';
import type { HttpDeps } from './deps.ts';
import { didRoutes } from './did.ts';
import { docsPageRoutes } from './docs-page.ts';
import { documentFacts } from './document-facts.ts';
import { documentRoutes } from './documents.ts';
import { faultAnswer, routeNotFound } from './errors.ts';
import { executeRoutes } from './execute.ts';
import { failureLog } from './failures.ts';
import { type Fetch, frontDoor, type Routed } from './front-door.ts';
import { frontPageRoutes } from './front-page.ts';
import { guidedRoutes } from './guided.ts';
import { handoffRoutes } from './handoff.ts';
import { healthRoutes } from './health.ts';
import { indexDocumentRoutes } from './index-documents.ts';
import { jobRoutes } from './jobs.ts';
import { keyRoutes } from './keys.ts';
import { mcpRoutes } from './mcp.ts';
import { methodRoutes, type RouteMethods } from './methods.ts';
import { metricsRoutes } from './metrics.ts';
import { monitoringRoutes, monitoringSummaries } from './monitoring.ts';
import { observed } from './observed.ts';
import { openapiRoutes, openapiText } from './openapi.ts';
import { policyRoutes } from './policy.ts';
import { type ProcessMeter, processMetrics } from './process-metrics.ts';
import { proofPageRoutes } from './proof-page.ts';
import { proofRoutes } from './proofs.ts';
import { scheduleRoutes } from './schedules.ts';
import { snippetRoutes } from './snippets.ts';
import { statusPageRoutes } from './status-page.ts';
import { transparencyRoutes } from './transparency.ts';
import { trustRoutes } from './trust.ts';
import { verifyRoutes } from './verify.ts';
import { verifyPageRoutes } from './verify-page.ts';
import { wellKnownRoutes } from './well-known.ts';

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
  let made: Promise<string> | undefined;
  const document = () => {
    made ??= openapiText(groups, documentFacts(deps));
    return made;
  };
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
    documentRoutes(deps),
    snippetRoutes(deps),
    indexDocumentRoutes(deps),
    wellKnownRoutes(deps),
    mcpRoutes(deps, route),
    frontPageRoutes(deps),
    statusPageRoutes(deps, summaries),
    verifyPageRoutes(deps),
    transparencyRoutes(deps),
    docsPageRoutes(deps, document),
    openapiRoutes(deps, document),
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
