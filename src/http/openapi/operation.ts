// How an operation is described: by the route table, and by the schemas that its route enforces and its answers fit.
import { type TSchema, Type } from '@sinclair/typebox';
import type { DocumentDecoration } from 'elysia';
import { JSON_TYPE } from '#src/discovery/document.ts';
import { HANDOFF_EXAMPLE } from '#src/discovery/documents/handoff-capabilities.ts';
import { SCHEDULE_EXAMPLES } from '#src/discovery/documents/schedule-capabilities.ts';
import { ACTION, PAID_ROUTES } from '#src/discovery/paid-routes.ts';
import { OPERATIONS, type ROUTES, type RouteFacts } from '#src/discovery/routes.ts';
import type { IntegerParameter } from '#src/http/request/validation.ts';
import { ChallengeBody, ErrorBody } from '#src/http/response/errors.ts';

export type Operation = {
  /** The path's only parameter. */
  readonly id?: { readonly name: string; readonly description: string };
  readonly query?: IntegerParameter;
  readonly body?: TSchema;
  /** By status: what it means, and the body's schema (a media type where it is not JSON, null where there is none). */
  readonly answers: Readonly<Record<number, readonly [description: string, body: TSchema | string | null]>>;
  /** What a call costs where payment is enforced: decimal US dollars. Absent: free. */
  readonly paidUsd?: string;
  /** Further statuses that answer with the error body. */
  readonly errors?: Readonly<Record<number, string>>;
  /** Statuses of `errors` that a browser gets as a page. */
  readonly pageErrors?: readonly number[];
};

/** By operation id, one request for each operation that takes a body. */
const EXAMPLES: Partial<Readonly<Record<string, unknown>>> = {
  execute: PAID_ROUTES['execute/webhook'].inputExample,
  executeGuided: PAID_ROUTES['execute/guided-webhook'].inputExample,
  decide: { action: ACTION, buyerPolicy: { maxPriceUsd: '0.01', requireReceipt: true } },
  checkPolicy: ACTION,
  handoff: HANDOFF_EXAMPLE,
  schedulePreview: SCHEDULE_EXAMPLES[0]?.request,
  mcp: { jsonrpc: '2.0', id: 1, method: 'tools/list' },
} satisfies Partial<Record<keyof typeof ROUTES, unknown>>;

/** Elysia's `detail`. Typed for OpenAPI 3.0, whose schema type excludes JSON Schema of 3.1: hence the one cast. */
export function describe(route: RouteFacts, operation: Operation): { detail: DocumentDecoration } {
  const { summary, description, tag } = route;
  const { body, answers, paidUsd, errors = {}, pageErrors = [] } = operation;
  const failures = { ...errors, 500: 'The service failed.' };
  const isSame = (other: RouteFacts) => other.method === route.method && other.path === route.path;
  const [operationId = ''] = OPERATIONS.find(([, listed]) => isSame(listed)) ?? [];
  const detail = {
    operationId,
    summary,
    description,
    tags: [tag],
    security: [],
    ...(paidUsd === undefined ? {} : { 'x-payment-info': paymentInfo(paidUsd) }),
    parameters: parametersOf(operation),
    ...(body === undefined
      ? {}
      : { requestBody: { required: true, content: contentOf(body, EXAMPLES[operationId]) } }),
    responses: {
      ...Object.fromEntries(
        Object.entries(answers).map(([status, [text, of]]) => [status, response(text, of)]),
      ),
      ...(paidUsd === undefined ? {} : { 402: challenge }),
      ...Object.fromEntries(
        Object.entries(failures).map(([status, text]) => {
          const page = pageErrors.includes(Number(status)) ? contentOf('text/html') : {};
          return [status, { description: text, content: { ...contentOf(ErrorBody), ...page } }];
        }),
      ),
    },
  };
  return { detail: detail as unknown as DocumentDecoration };
}

/** A route that the document leaves out. */
export const unlisted: { detail: DocumentDecoration } = { detail: { hide: true } };

function parametersOf({ id, query }: Operation) {
  const path = id === undefined ? [] : [{ ...id, in: 'path', required: true, schema: Type.String() }];
  if (query === undefined) return path;
  const { name, min: minimum, max: maximum, default: fallback, description } = query;
  const schema = Type.Integer({ minimum, maximum, default: fallback });
  return [...path, { in: 'query', name, required: false, schema, description }];
}

const challenge = {
  ...response('Payment required, or the payment is refused: `error` says why.', ChallengeBody),
  headers: {
    'PAYMENT-REQUIRED': {
      description: 'The challenge of x402 version 2: base64 of JSON.',
      schema: Type.String(),
    },
  },
};

/** As directories of paid services read it. */
function paymentInfo(amount: string) {
  return { price: { mode: 'fixed', currency: 'USD', amount }, protocols: [{ x402: {} }] };
}

function response(description: string, body: TSchema | string | null) {
  return { description, ...(body === null ? {} : { content: contentOf(body) }) };
}

function contentOf(body: TSchema | string, example?: unknown) {
  if (typeof body === 'string') return { [body]: { schema: Type.String() } };
  return { [JSON_TYPE]: { schema: body, ...(example === undefined ? {} : { example }) } };
}
