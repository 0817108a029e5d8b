// Paid execution of a request as it comes.

import { WebhookRequest } from '#src/domain/job/webhook-request.ts';
import { isRefused } from '#src/domain/refusal.ts';
import type { HttpDeps } from '#src/http/deps.ts';
import { schemaCheck } from '#src/http/request/schema-check.ts';
import { ExecutionResponse, executionShown } from '#src/http/response/execution-response.ts';
import { paidRoute } from './paid-route.ts';

const check = schemaCheck(WebhookRequest);

export function executeRoutes(deps: HttpDeps) {
  return paidRoute(deps, {
    route: 'execute/webhook',
    check,
    async execute(request, caller) {
      const unguided = { decisionId: null, decisionHash: null, notApproved: null };
      const execution = await deps.execute({ request, route: 'execute/webhook', ...unguided, ...caller });
      if (isRefused(execution)) return execution;
      return { execution, shown: (links) => executionShown(execution, links, deps.transparency.latest()) };
    },
    operation: {
      answers: {
        200: ['The last attempt answered 2xx.', ExecutionResponse],
        502: ['The target failed: a recorded, receipted outcome.', ExecutionResponse],
      },
      errors: {
        409: 'The idempotency key or the payment is in use for another request, or its first call is still running.',
      },
    },
  });
}
