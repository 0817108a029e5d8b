// Paid execution of a request as it comes.
import { isRefused } from '#src/domain/refusal.ts';
import { WebhookRequest } from '#src/domain/webhook-request.ts';
import type { HttpDeps } from './deps.ts';
import { ExecutionResponse, executionShown } from './execution-answer.ts';
import { paidRoute } from './paid-route.ts';
import { schemaCheck } from './schema-check.ts';

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
