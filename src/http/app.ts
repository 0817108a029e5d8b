// The HTTP application: route groups behind one pipeline. It decides the statuses and shapes of answers; the use cases
// decide what is true and what may happen, the runtime adapters own the sockets.
import { type AnyElysia, Elysia } from 'elysia';
import { WebStandardAdapter } from 'elysia/adapter/web-standard';
import { refused } from '#src/domain/refusal.ts';
import { mcpRoutes } from '#src/http/mcp/routes.ts';
import { openapiRoutes, openapiText } from '#src/http/openapi/document.ts';
import { unlisted } from '#src/http/openapi/operation.ts';
import { badgeRoutes } from '#src/http/pages/badge.ts';
import { docsPageRoutes } from '#src/http/pages/docs-page.ts';
import { frontPageRoutes } from '#src/http/pages/front-page.ts';
import { proofPageRoutes } from '#src/http/pages/proof-page.ts';
import { statusPageRoutes } from '#src/http/pages/status-page.ts';
import { verifyPageRoutes } from '#src/http/pages/verify-page.ts';
import { type Fetch, type PipelineDeps, pipeline, type Routed } from '#src/http/request/pipeline.ts';
import { contextOf } from '#src/http/request/request-context.ts';
import { failureLog, faultAnswer, refusalAnswer, routeNotFound } from '#src/http/response/errors.ts';
import { canaryRoutes } from '#src/http/routes/canary.ts';
import { type DecisionDeps, decisionRoutes } from '#src/http/routes/decisions.ts';
import { type DeploymentFacts, documentFacts, documentRoutes } from '#src/http/routes/documents.ts';
import { type ExecuteDeps, executeRoutes } from '#src/http/routes/execute.ts';
import { type HandoffDeps, handoffRoutes } from '#src/http/routes/handoff.ts';
import { type HealthDeps, healthRoutes } from '#src/http/routes/health.ts';
import { jobRoutes } from '#src/http/routes/jobs.ts';
import { type KeyDeps, keyRoutes } from '#src/http/routes/keys.ts';
import { monitoringRoutes, monitoringSummaries } from '#src/http/routes/monitoring.ts';
import { type PolicyDeps, policyRoutes } from '#src/http/routes/policy.ts';
import { proofRoutes } from '#src/http/routes/proofs.ts';
import { type ScheduleDeps, scheduleRoutes } from '#src/http/routes/schedules.ts';
import { type TransparencyDeps, transparencyRoutes } from '#src/http/routes/transparency.ts';
import { type TrustDeps, trustRoutes } from '#src/http/routes/trust.ts';
import { type VerifyDeps, verifyRoutes } from '#src/http/routes/verify.ts';
import type { HttpSettings, Progress, Reads } from './deps.ts';
import { type ProcessMeter, processMeter } from './instrumentation.ts';

/** What the route groups declare, together. */
export type AppDeps = PipelineDeps &
  DeploymentFacts &
  ExecuteDeps &
  DecisionDeps &
  PolicyDeps &
  HandoffDeps &
  ScheduleDeps &
  VerifyDeps &
  TrustDeps &
  HealthDeps &
  KeyDeps &
  TransparencyDeps & {
    readonly reads: Reads;
    readonly progress: Progress;
    readonly settings: HttpSettings;
    /** The script that the pages run: the verifier, built beforehand. */
    readonly verifyScript: string;
  };

export type App = {
  readonly fetch: Fetch;
  /** What is served, without OPTIONS, HEAD and the refusals of other methods. */
  readonly routes: RouteMethods;
};

export function createApp(deps: AppDeps): App {
  const meter = processMeter(deps.clock);
  const route: Routed = async (request) => router.fetch(request);
  const groups = routeGroups(deps, meter, route);
  const logFailure = failureLog(deps);
  // One code path on both runtimes: not the Bun adapter that Elysia picks under Bun.
  const router = new Elysia({ adapter: WebStandardAdapter, normalize: false, strictPath: true }).onError(
    ({ code, error, request }) => {
      if (code === 'NOT_FOUND') return routeNotFound();
      logFailure(contextOf(request).id, error);
      return faultAnswer(error);
    },
  );
  // Before the groups: it runs for the routes that are added after it.
  router.onTransform(({ request, route }) => {
    contextOf(request).route = route;
  });
  for (const group of groups) router.use(group);
  const routes = groups.flatMap((group) => group.routes.map(({ method, path }) => ({ method, path })));
  router.use(otherMethods(routes));
  router.compile();
  return { fetch: pipeline(deps, meter, route), routes };
}

function routeGroups(deps: AppDeps, meter: ProcessMeter, route: Routed): readonly AnyElysia[] {
  const summaries = monitoringSummaries(deps, meter);
  const { reads, progress, logger, clock, transparency, verifyScript } = deps;
  const facts = documentFacts(deps);
  const openapi = () => openapiText(groups, facts);
  const groups: readonly AnyElysia[] = [
    executeRoutes(deps),
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
    keyRoutes(deps),
    handoffRoutes(deps),
    scheduleRoutes(deps),
    canaryRoutes(deps),
    documentRoutes(facts),
    mcpRoutes(deps, facts, route),
    frontPageRoutes({ facts, reads, progress, logger, clock }),
    statusPageRoutes({ facts, progress, clock }, summaries),
    verifyPageRoutes({ facts, transparency, verifyScript }),
    transparencyRoutes(deps),
    docsPageRoutes(facts, openapi),
    openapiRoutes(facts, openapi),
  ];
  return groups;
}

export type RouteMethods = readonly { readonly method: string; readonly path: string }[];

/** 405 with Allow for methods that a path does not serve, and OPTIONS. HEAD is answered by GET's route; see pipeline.ts. */
function otherMethods(routes: RouteMethods) {
  const app = new Elysia();
  for (const path of new Set(routes.map((route) => route.path))) {
    const methods = routes.filter((route) => route.path === path).map(({ method }) => method);
    const allow = [...methods, ...(methods.includes('GET') ? ['HEAD'] : []), 'OPTIONS'].join(', ');
    app.options(path, () => preflight(allow), unlisted);
    app.all(path, () => wrongMethod(allow), { parse: 'none', ...unlisted });
  }
  return app;
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
      // x402 clients send the last one with a request, where it has no meaning but has to be allowed.
      'access-control-allow-headers':
        'content-type, accept, mcp-protocol-version, x-request-id, payment-signature, x-payment, access-control-expose-headers',
      'access-control-max-age': '7200',
    },
  });
}
