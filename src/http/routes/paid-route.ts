// A paid route on the wire: take in, execute, answer 200 or 502 with the receipt and the payment header. What is executed, and what the body says of it, is each route's own.
import type { Static, TSchema } from '@sinclair/typebox';
import { Elysia } from 'elysia';
import { usd } from '#src/discovery/facts.ts';
import { PAID_ROUTES } from '#src/discovery/paid-routes.ts';
import type { Route } from '#src/domain/event-fields.ts';
import { isRefused, type Refused } from '#src/domain/refusal.ts';
import type { HttpDeps } from '#src/http/deps.ts';
import { describe, type Operation } from '#src/http/openapi/operation.ts';
import { countedAs } from '#src/http/request/client-address.ts';
import { INTAKE_ERRORS, takeInPaid } from '#src/http/request/parse-request.ts';
import { paymentGate } from '#src/http/request/payment-gate.ts';
import { rateRule } from '#src/http/request/rate-limit.ts';
import { callOf } from '#src/http/request/request-context.ts';
import type { SchemaCheck } from '#src/http/request/schema-check.ts';
import { faultWithJobLink, statusOf, withJobLink } from '#src/http/response/execution-response.ts';
import { json } from '#src/http/response/json.ts';
import { type Links, linksFrom } from '#src/http/response/links.ts';
import type { ExecuteInput, Execution } from '#src/usecases/execution/execution-call.ts';

/** Who calls, and how. */
export type Caller = Pick<ExecuteInput, 'presented' | 'payer' | 'client' | 'via'>;

export type PaidRoute<S extends TSchema> = {
  readonly route: Route;
  readonly check: SchemaCheck<S>;
  execute(
    body: Static<S>,
    caller: Caller,
  ): Promise<{ readonly execution: Execution; shown(links: Links): unknown } | Refused>;
  readonly operation: Pick<Operation, 'answers'> & { readonly errors: Operation['errors'] };
};

export function paidRoute<S extends TSchema>(deps: HttpDeps, paid: PaidRoute<S>) {
  const { route, check } = paid;
  const gate = paymentGate(deps, route);
  const links = linksFrom(deps.settings.baseUrl);
  // One rule by one name: both paid routes share a caller's rate.
  const rates = [rateRule('execute', deps.settings.rateLimitPerMinute)];
  return new Elysia().post(
    PAID_ROUTES[route].path,
    async ({ request }) => {
      const taken = await takeInPaid(deps, request, { rates, check }, gate);
      if (isRefused(taken)) return gate.refuse(taken);
      const { body, presented, payer } = taken;
      const client = countedAs(callOf(request).client);
      const caller = { presented, payer, client, via: request.headers.get('via') };
      const done = await paid.execute(body, caller).catch((thrown: unknown) => {
        throw faultWithJobLink(thrown, links);
      });
      if (isRefused(done)) return gate.refuse(withJobLink(done, links));
      const { execution } = done;
      const headers = await gate.settled(execution, presented);
      return json(statusOf(execution), done.shown(links), headers);
    },
    { parse: 'none', ...describe(PAID_ROUTES[route], operationOf(deps, paid)) },
  );
}

function operationOf({ settings }: HttpDeps, { route, operation }: PaidRoute<TSchema>): Operation {
  const { inputSchema } = PAID_ROUTES[route];
  return {
    ...operation,
    body: inputSchema,
    paidUsd: usd(settings.offer),
    errors: {
      ...INTAKE_ERRORS,
      400: 'The request is invalid or its target is refused: nothing was sent.',
      429: 'Rate limited, or too many calls in flight.',
      503: 'A part of the service is unavailable, or the payment is unconfirmed: see error.code.',
      508: 'The request came through this relay already.',
      ...operation.errors,
    },
  };
}
