// An endpoint: a route of the table, how the interface description shows it, and what answers it. The room is a list of
// them; app.ts serves the list, the interface description and the MCP tools are made of it.
import type { Static, TSchema } from '@sinclair/typebox';
import type { RouteFacts } from '#src/discovery/routes.ts';
import { isRefused, type Refused } from '#src/domain/refusal.ts';
import type { QuotaRule } from '#src/ports/quota.ts';
import { BODY_ERRORS, type ParseDeps, parseRequest } from './request/parse-request.ts';
import { contextOf, countedAs } from './request/request-context.ts';
import type { IntegerParameter, SchemaCheck } from './request/validation.ts';
import { refusalAnswer } from './response/errors.ts';
import { json } from './response/json.ts';

export type Operation = {
  /** The path's only parameter. `pattern`: of every identifier that can exist. */
  readonly id?: { readonly description: string; readonly pattern?: string };
  readonly query?: IntegerParameter;
  readonly body?: TSchema;
  readonly example?: unknown;
  /** By status: what it means, and the body's schema (a media type where it is not JSON, null where there is none). */
  readonly answers: Readonly<Record<number, readonly [description: string, body: TSchema | string | null]>>;
  /** What a call costs where payment is enforced: decimal US dollars. Absent: free. */
  readonly paidUsd?: string;
  /** Further statuses that answer with the error body. */
  readonly errors?: Readonly<Record<number, string>>;
  /** Statuses of `errors` that a browser gets as a page. */
  readonly pageErrors?: readonly number[];
};

/** `id`: value of the path's parameter; empty if it has none. */
export type EndpointCall = { readonly request: Request; readonly id: string };

export type Endpoint = {
  readonly route: RouteFacts;
  /** null: the interface description leaves the route out. */
  readonly operation: Operation | null;
  readonly answer: (call: EndpointCall) => Response | Promise<Response>;
  /** What a caller gets who has read too much, where that is not the error body alone. */
  readonly refused?: (request: Request, refusal: Refused<'rate_limited'>) => Response;
};

/** A refusal is answered with its status, any other value with 200. */
type Answered = Response | Refused | object;

export function endpoint(
  route: RouteFacts,
  operation: Operation | null,
  answer: (call: EndpointCall) => Promise<Answered> | Response,
  refused?: Endpoint['refused'],
): Endpoint {
  return {
    route,
    operation,
    ...(refused && { refused }),
    answer(call) {
      const answered = answer(call);
      return answered instanceof Promise ? answered.then(responseOf) : answered;
    },
  };
}

function responseOf(answered: Answered): Response {
  if (answered instanceof Response) return answered;
  return isRefused(answered) ? refusalAnswer(answered) : json(200, answered);
}

type BodyEndpoint<S extends TSchema> = {
  readonly rates: readonly QuotaRule[];
  readonly check: SchemaCheck<S>;
  /** Of the body as it is described, where that is more than `check`. */
  readonly body?: TSchema;
  readonly example: unknown;
  readonly maxBytes?: number;
  readonly ok: readonly [description: string, body: TSchema];
  readonly errors: Readonly<Record<400 | 503, string>>;
  /** `client`: the client address, as it is counted. */
  answer(body: Static<S>, client: string, headers: Headers): Promise<Answered>;
};

export function bodyEndpoint<S extends TSchema>(
  deps: ParseDeps,
  route: RouteFacts,
  { rates, check, body = check.schema, example, maxBytes, ok, errors, answer }: BodyEndpoint<S>,
): Endpoint {
  const rules = { rates, check, ...(maxBytes === undefined ? {} : { maxBytes }) };
  const operation = { body, example, answers: { 200: ok }, errors: { ...BODY_ERRORS, ...errors } };
  return endpoint(route, operation, async ({ request }) => {
    const parsed = await parseRequest(deps, request, rules);
    if (isRefused(parsed)) return parsed;
    return answer(parsed.body, countedAs(contextOf(request).client), request.headers);
  });
}

export const PART_UNAVAILABLE = 'A part of the service is unavailable: see error.code.';
