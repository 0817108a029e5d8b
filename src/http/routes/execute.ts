// The paid routes: parse, execute, answer 200 or 502 with the receipt and the payment header. Guided execution runs what
// a decision approved.
import type { Static, TSchema } from '@sinclair/typebox';
import { Elysia } from 'elysia';
import { usd } from '#src/discovery/facts.ts';
import { PAID_ROUTES } from '#src/discovery/paid-routes.ts';
import { GuidedRequest } from '#src/domain/decision/requests.ts';
import type { Route } from '#src/domain/event-fields.ts';
import { WebhookRequest } from '#src/domain/job/webhook-request.ts';
import { isRefused, type Refused } from '#src/domain/refusal.ts';
import type { Settings } from '#src/http/deps.ts';
import { describe, type Operation } from '#src/http/openapi/operation.ts';
import { BODY_ERRORS, type ParseDeps, parsePaidRequest, rateRule } from '#src/http/request/parse-request.ts';
import { type GateDeps, paymentGate } from '#src/http/request/payment-gate.ts';
import { contextOf, countedAs } from '#src/http/request/request-context.ts';
import { type SchemaCheck, schemaCheck } from '#src/http/request/validation.ts';
import {
  ExecutionResponse,
  executionShown,
  faultWithJobLink,
  GuidedResponse,
  guidedShown,
  statusOf,
  withJobLink,
} from '#src/http/response/execution-response.ts';
import { json } from '#src/http/response/json.ts';
import { linksFrom } from '#src/http/response/links.ts';
import type { Guided, GuidedInput } from '#src/usecases/execution/execute-guided-webhook.ts';
import type { ExecuteInput, Execution } from '#src/usecases/execution/execution-call.ts';
import type { Transparency } from '#src/usecases/transparency/proofs.ts';

export type ExecuteDeps = ParseDeps &
  GateDeps &
  Settings<'baseUrl' | 'offer' | 'rateLimitPerMinute'> & {
    execute(input: ExecuteInput): Promise<Execution | Refused>;
    executeGuided(input: GuidedInput): Promise<Guided | Refused>;
    readonly transparency: Pick<Transparency, 'latest'>;
  };

export function executeRoutes(deps: ExecuteDeps) {
  const links = linksFrom(deps.settings.baseUrl);
  const unguided = {
    route: 'execute/webhook',
    decisionId: null,
    decisionHash: null,
    notApproved: null,
  } as const;
  return new Elysia()
    .use(
      paidRoute(deps, {
        route: 'execute/webhook',
        check: schemaCheck(WebhookRequest),
        async execute(request, caller) {
          const execution = await deps.execute({ ...unguided, request, ...caller });
          if (isRefused(execution)) return execution;
          return { execution, shown: () => executionShown(execution, links, deps.transparency.latest()) };
        },
        response: ExecutionResponse,
        errors: {
          409: 'The idempotency key or the payment is in use for another request, or its first call is still running. details.paymentState: the payment of the first call is being settled (reserved) or not confirmed yet (unconfirmed); nothing was charged for this one.',
        },
      }),
    )
    .use(
      paidRoute(deps, {
        route: 'execute/guided-webhook',
        check: schemaCheck(GuidedRequest),
        async execute({ decisionId, action }, caller) {
          const guided = await deps.executeGuided({ decisionId, action, ...caller });
          if (isRefused(guided)) return guided;
          const { execution } = guided;
          return { execution, shown: () => guidedShown(guided, links, deps.transparency.latest()) };
        },
        response: GuidedResponse,
        errors: {
          404: 'There is no such decision.',
          409: 'The decision does not approve this call, or its key or payment is in use: see error.code.',
        },
      }),
    );
}

/** Who calls, and how. */
type Caller = Pick<ExecuteInput, 'presented' | 'payer' | 'client' | 'via'>;

type PaidRoute<S extends TSchema> = {
  readonly route: Route;
  readonly check: SchemaCheck<S>;
  execute(
    body: Static<S>,
    caller: Caller,
  ): Promise<{ readonly execution: Execution; shown(): unknown } | Refused>;
  readonly response: TSchema;
  readonly errors: Readonly<Record<number, string>>;
};

function paidRoute<S extends TSchema>(deps: ExecuteDeps, paid: PaidRoute<S>) {
  const { route, check } = paid;
  const gate = paymentGate(deps, route);
  const links = linksFrom(deps.settings.baseUrl);
  // One rule for both: the paid routes share a caller's rate.
  const rules = { check, rates: [rateRule('execute', deps.settings.rateLimitPerMinute)] };
  return new Elysia().post(
    PAID_ROUTES[route].path,
    async ({ request }) => {
      const parsed = await parsePaidRequest(deps, request, rules, gate);
      if (isRefused(parsed)) return gate.refuse(parsed);
      const { body, presented, payer } = parsed;
      const client = countedAs(contextOf(request).client);
      const caller = { presented, payer, client, via: request.headers.get('via') };
      const done = await paid.execute(body, caller).catch((thrown: unknown) => {
        throw faultWithJobLink(thrown, links);
      });
      if (isRefused(done)) return gate.refuse(withJobLink(done, links));
      const { execution } = done;
      const headers = await gate.settled(execution, presented);
      return json(statusOf(execution), done.shown(), headers);
    },
    { parse: 'none', ...describe(PAID_ROUTES[route], operationOf(deps, paid)) },
  );
}

function operationOf({ settings }: ExecuteDeps, { route, response, errors }: PaidRoute<TSchema>): Operation {
  return {
    body: PAID_ROUTES[route].inputSchema,
    answers: {
      200: ['The last attempt answered 2xx.', response],
      502: ['The target failed: a recorded, receipted outcome.', response],
    },
    paidUsd: usd(settings.offer),
    errors: {
      ...BODY_ERRORS,
      400: 'The request is invalid or its target is refused: nothing was sent.',
      429: 'Rate limited, or too many calls in flight.',
      503: 'A part of the service is unavailable, or the payment is unconfirmed: see error.code.',
      508: 'The request came through this relay already.',
      ...errors,
    },
  };
}
