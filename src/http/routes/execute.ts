// The paid routes: parse, execute, answer 200 or 502 with the receipt and the payment header. Guided execution runs what
// a decision approved.
import type { Static, TSchema } from '@sinclair/typebox';
import { usd } from '#src/discovery/facts.ts';
import { PAID_ROUTES } from '#src/discovery/paid-routes.ts';
import { GuidedRequest } from '#src/domain/decision/requests.ts';
import type { Route } from '#src/domain/event-fields.ts';
import { WebhookRequest } from '#src/domain/job/webhook-request.ts';
import { ALLOWED, isRefused, type Refused } from '#src/domain/refusal.ts';
import type { Settings } from '#src/http/deps.ts';
import { type Endpoint, endpoint } from '#src/http/endpoint.ts';
import { judgeKey, withHeaderKey } from '#src/http/request/idempotency-header.ts';
import {
  BODY_ERRORS,
  type ParseDeps,
  type Parsed,
  parsePaidRequest,
  rateRule,
} from '#src/http/request/parse-request.ts';
import { type GateDeps, paymentGate, type RouteRefused } from '#src/http/request/payment-gate.ts';
import { prefersRepresentation, REPRESENTATION } from '#src/http/request/preference.ts';
import { contextOf, countedAs } from '#src/http/request/request-context.ts';
import { faultsIn, type SchemaCheck, schemaCheck } from '#src/http/request/validation.ts';
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
import { readRequest } from '#src/usecases/decisions/judge-request.ts';
import type { Guided, GuidedInput } from '#src/usecases/execution/execute-guided-webhook.ts';
import type { ExecuteInput, Execution } from '#src/usecases/execution/execution-call.ts';
import type { Transparency } from '#src/usecases/transparency/proofs.ts';

export type ExecuteRouteDeps = ParseDeps &
  GateDeps &
  Settings<'baseUrl' | 'offer' | 'rateLimitPerMinute' | 'returnsResponses'> & {
    execute(input: ExecuteInput): Promise<Execution | Refused>;
    executeGuided(input: GuidedInput): Promise<Guided | Refused>;
    readonly transparency: Pick<Transparency, 'latest'>;
    /** An opaque key of a client address. */
    clientKey(address: string): string;
  };

export function executeRoutes(deps: ExecuteRouteDeps): Endpoint[] {
  const links = linksFrom(deps.settings.baseUrl);
  const checkpoint = deps.transparency.latest;
  return [
    paidEndpoint(deps, {
      route: 'execute/webhook',
      check: schemaCheck(WebhookRequest),
      response: ExecutionResponse,
      errors: {
        409: 'The idempotency key (idempotencyKey, or the request header Idempotency-Key, or the id of the extension payment-identifier in the payment of a request that has none) or the payment is in use for another request, or its first call is still running. details.paymentState: the payment of the first call is being settled (reserved), not confirmed yet (unconfirmed) or being refunded (refunding); nothing was charged for this one.',
      },
      withKey(request, headers) {
        const keyed = withHeaderKey(request, headers);
        return isRefused(keyed) ? keyed : { body: keyed };
      },
      read: (request) => readRequest(request),
      async execute(request, caller) {
        const unguided = { decisionId: null, decisionHash: null, approval: ALLOWED } as const;
        const execution = await deps.execute({ route: 'execute/webhook', ...unguided, request, ...caller });
        if (isRefused(execution)) return execution;
        return { execution, shown: () => executionShown(execution, request, links, checkpoint()) };
      },
    }),
    paidEndpoint(deps, {
      route: 'execute/guided-webhook',
      check: schemaCheck(GuidedRequest),
      response: GuidedResponse,
      errors: {
        404: 'There is no such decision.',
        409: 'The decision does not approve this call, or its key or payment is in use: see error.code.',
      },
      // The decision is the key, of the action as it was decided.
      withKey(request, headers) {
        const keyed = withHeaderKey(request.action, headers, '/action');
        return isRefused(keyed) ? keyed : { body: request };
      },
      read: ({ action }) => readRequest(action, '/action'),
      async execute(request, caller) {
        const guided = await deps.executeGuided({ ...request, ...caller });
        if (isRefused(guided)) return guided;
        return {
          execution: guided.execution,
          shown: () => guidedShown(guided, request.action, links, checkpoint()),
        };
      },
    }),
  ];
}

type PaidEndpoint<S extends TSchema> = {
  readonly route: Route;
  readonly check: SchemaCheck<S>;
  readonly response: TSchema;
  readonly errors: Readonly<Record<number, string>>;
  /** With the key of the header Idempotency-Key if it has none. */
  withKey(body: Static<S>, headers: Headers): Parsed<Static<S>> | Refused<'invalid_request'>;
  /** What a body that fits its schema is refused for all the same. */
  read(body: Static<S>): object | Refused<'invalid_request'>;
  /** `caller`: who calls, and how. `shown`: the body of the answer, made when the payment header is. */
  execute(
    body: Static<S>,
    caller: Pick<ExecuteInput, 'presented' | 'payer' | 'client' | 'via' | 'returnsResponse'>,
  ): Promise<{ readonly execution: Execution; shown(): unknown } | Refused>;
};

function paidEndpoint<S extends TSchema>(deps: ExecuteRouteDeps, paid: PaidEndpoint<S>): Endpoint {
  const { route, check, response, errors } = paid;
  const { baseUrl, offer, rateLimitPerMinute, returnsResponses } = deps.settings;
  const gate = paymentGate(deps, route);
  const links = linksFrom(baseUrl);
  // One rule for both: the paid routes share a caller's rate.
  const rules = { check, rates: [rateRule('execute', rateLimitPerMinute)], judgeHeaders: judgeKey };
  const operation = {
    body: PAID_ROUTES[route].inputSchema,
    example: PAID_ROUTES[route].inputExample,
    answers: {
      200: [`The last attempt answered 2xx.${returnsResponses ? PREFER : ''}`, response],
      502: ['The target failed: a recorded, receipted outcome.', response],
    },
    paidUsd: usd(offer),
    errors: {
      ...BODY_ERRORS,
      400: 'The request is invalid (a header Idempotency-Key beside another idempotencyKey, too) or its target is refused: nothing was sent.',
      429: 'Rate limited, or too many calls in flight.',
      503: 'A part of the service is unavailable, or the payment is unconfirmed: see error.code.',
      508: 'The request came through this relay already.',
      ...errors,
    },
  } as const;
  /** A 402 says what the request would be refused for, before anything is signed for it. */
  function hinted(refusal: RouteRefused, headers: Headers): RouteRefused {
    if (!check.matches(refusal.body)) return refusal;
    const keyed = paid.withKey(refusal.body, headers);
    const read = isRefused(keyed) ? keyed : paid.read(keyed.body);
    return isRefused(read) ? { ...refusal, hints: faultsIn(read) } : refusal;
  }
  return endpoint(PAID_ROUTES[route], operation, async ({ request }) => {
    const parsed = await parsePaidRequest(deps, request, rules, gate);
    if (isRefused(parsed)) return gate.refuse(hinted(parsed, request.headers));
    const { presented, payer } = parsed;
    const keyed = paid.withKey(parsed.body, request.headers);
    if (isRefused(keyed)) return gate.refuse(keyed);
    const client = deps.clientKey(countedAs(contextOf(request).client));
    const { headers: given } = request;
    const returnsResponse = returnsResponses && prefersRepresentation(given);
    const caller = { presented, payer, client, via: given.get('via'), returnsResponse };
    const done = await paid.execute(keyed.body, caller).catch((thrown: unknown) => {
      throw faultWithJobLink(thrown, links);
    });
    if (isRefused(done)) return gate.refuse(withJobLink(done, links));
    const settled = await gate.settled(done.execution, presented);
    const applied = done.execution.response === null ? {} : { 'preference-applied': REPRESENTATION };
    return json(statusOf(done.execution), done.shown(), { ...settled, ...applied });
  });
}

// In words: some clients take the first parameter of an operation for its whole input.
const PREFER = ` With the request header \`Prefer: ${REPRESENTATION}\` the answer of the target is returned in \`response\`, as far as it was read, in the first answer of this call alone. It is never stored, and a replay has none. \`Preference-Applied\` says that it is there.`;
