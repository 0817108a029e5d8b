// The HTTP room put together: route groups behind one front door. Decides statuses and shapes of answers;
// leaves what is true and what may happen to the use cases, sockets to the runtime adapters.
import { type AnyElysia, Elysia } from 'elysia';
import { WebStandardAdapter } from 'elysia/adapter/web-standard';
import { badgeRoutes } from './badge.ts';
import { callOf } from './call.ts';
import { decideRoutes } from './decide.ts';
import { decisionRoutes } from './decisions.ts';
import type { HttpDeps } from './deps.ts';
import { didRoutes } from './did.ts';
import { faultAnswer, routeNotFound } from './errors.ts';
import { executeRoutes } from './execute.ts';
import { failureLog } from './failures.ts';
import { type Fetch, frontDoor } from './front-door.ts';
import { guidedRoutes } from './guided.ts';
import { healthRoutes } from './health.ts';
import { jobRoutes } from './jobs.ts';
import { keyRoutes } from './keys.ts';
import { methodRoutes } from './methods.ts';
import { metricsRoutes } from './metrics.ts';
import { monitoringRoutes } from './monitoring.ts';
import { observed } from './observed.ts';
import { openapiRoutes, openapiText } from './openapi.ts';
import { policyRoutes } from './policy.ts';
import { type ProcessMeter, processMetrics } from './process-metrics.ts';
import { proofPageRoutes } from './proof-page.ts';
import { proofRoutes } from './proofs.ts';
import { trustRoutes } from './trust.ts';
import { verifyRoutes } from './verify.ts';

export type App = { readonly fetch: Fetch };

export function createApp(deps: HttpDeps): App {
  const meter = processMetrics(deps.clock);
  const groups = routeGroups(deps, meter);
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
  router.use(methodRoutes(groups.flatMap((group) => group.routes)));
  router.compile();
  const answer = frontDoor(deps, async (request) => router.fetch(request));
  return { fetch: observed(deps, meter, answer) };
}

function routeGroups(deps: HttpDeps, meter: ProcessMeter): readonly AnyElysia[] {
  let document: Promise<string> | undefined;
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
    monitoringRoutes(deps, meter),
    trustRoutes(deps),
    healthRoutes(deps),
    metricsRoutes(deps),
    keyRoutes(deps),
    didRoutes(deps),
    openapiRoutes(() => {
      document ??= openapiText(groups, deps.settings);
      return document;
    }),
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
