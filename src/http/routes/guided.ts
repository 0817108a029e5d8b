// Paid execution of what a decision approved.
import { GuidedRequest } from '#src/domain/decision/guided-request.ts';
import { isRefused } from '#src/domain/refusal.ts';
import type { HttpDeps } from '#src/http/deps.ts';
import { schemaCheck } from '#src/http/request/schema-check.ts';
import { GuidedResponse, guidedShown } from '#src/http/response/execution-response.ts';
import { paidRoute } from './paid-route.ts';

const check = schemaCheck(GuidedRequest);

export function guidedRoutes(deps: HttpDeps) {
  return paidRoute(deps, {
    route: 'execute/guided-webhook',
    check,
    async execute({ decisionId, action }, caller) {
      const guided = await deps.executeGuided({ decisionId, action, ...caller });
      if (isRefused(guided)) return guided;
      return {
        execution: guided.execution,
        shown: (links) => guidedShown(guided, links, deps.transparency.latest()),
      };
    },
    operation: {
      answers: {
        200: ['The last attempt answered 2xx.', GuidedResponse],
        502: ['The target failed: a recorded, receipted outcome.', GuidedResponse],
      },
      errors: {
        404: 'There is no such decision.',
        409: 'The decision does not approve this call, or its key or payment is in use: see error.code.',
      },
    },
  });
}
