// The interface description: OpenAPI 3.1.0, assembled by @elysiajs/swagger from the operations of the endpoints: by the
// route table, and by the schemas that the routes enforce and their answers fit.
import { filterPaths, registerSchemaPath } from '@elysiajs/swagger/utils';
import { type TSchema, Type } from '@sinclair/typebox';
import type { DocumentDecoration } from 'elysia';
import { addressOf } from '#src/discovery/document.ts';
import type { Facts } from '#src/discovery/facts.ts';
import { guidanceText, PURPOSE } from '#src/discovery/guidance.ts';
import {
  JSON_TYPE,
  OPERATIONS,
  ROUTES,
  type RouteFacts,
  SCHEDULE_OPERATIONS,
  TAGS,
} from '#src/discovery/routes.ts';
import { ERROR_CODES, ERRORS, type ErrorEntry } from '#src/domain/error-catalog.ts';
import { SERVICE } from '#src/domain/limits.ts';
import { portableSchema } from '#src/domain/portable-schema.ts';
import type { Endpoint, Operation } from './endpoint.ts';
import { ChallengeBody, ErrorBody } from './response/errors.ts';

/** Each schema of `named` is in `components.schemas` once, and a `$ref` wherever the operations or other schemas use it. */
export function openapiText(
  endpoints: readonly Endpoint[],
  facts: Facts,
  named: Readonly<Record<string, TSchema>>,
): string {
  const references = new Map<unknown, { readonly $ref: string }>(
    Object.entries(named).map(([name, of]) => [of, { $ref: `#/components/schemas/${name}` }]),
  );
  const publish: Publish = (of) => portableSchema(of, references);
  const schema = {};
  for (const { route, operation } of endpoints) {
    if (operation === null) continue;
    const hook = { detail: described(route, operation, publish) };
    registerSchemaPath({ schema, method: route.method, path: route.path, hook, models: {} });
  }
  const document = {
    openapi: '3.1.0',
    info: {
      title: SERVICE.name,
      description: PURPOSE,
      version: SERVICE.version,
      license: { name: 'MIT', identifier: 'MIT' },
      contact: { name: SERVICE.name, url: addressOf(facts, ROUTES.frontPage) },
      'x-guidance': guidanceText(facts),
    },
    servers: [{ url: facts.baseUrl }],
    tags: Object.entries(TAGS).map(([name, description]) => ({ name, description })),
    externalDocs: { description: ROUTES.docsPage.summary, url: addressOf(facts, ROUTES.docsPage) },
    paths: filterPaths(schema, { excludeStaticFile: false, exclude: [] }),
    // Copies: the named schemas themselves are replaced.
    components: {
      schemas: Object.fromEntries(Object.entries(named).map(([name, of]) => [name, publish({ ...of })])),
    },
  };
  return JSON.stringify(document);
}

type Publish = (schema: TSchema) => object;

/** Typed for OpenAPI 3.0, whose schema type excludes JSON Schema of 3.1: hence the one cast. */
function described(route: RouteFacts, operation: Operation, publish: Publish): DocumentDecoration {
  const { method, path, summary, description, tag } = route;
  const { body, example, answers, paidUsd, pageErrors = [] } = operation;
  const [operationId = ''] =
    [...OPERATIONS, ...SCHEDULE_OPERATIONS].find(([, of]) => of.method === method && of.path === path) ?? [];
  const responses: Record<string, unknown> = {};
  for (const [status, [text, of]] of Object.entries(answers)) responses[status] = response(text, of, publish);
  if (paidUsd !== undefined) responses[402] = challenge(publish);
  for (const [status, text] of Object.entries(errorsOf(operation))) {
    const page = pageErrors.includes(Number(status)) ? contentOf('text/html', publish) : {};
    responses[status] = {
      description: text,
      ...(WAITS.has(Number(status)) && { headers: RETRY_AFTER }),
      content: { ...contentOf(ErrorBody, publish), ...page },
    };
  }
  const detail = {
    operationId,
    summary,
    description,
    tags: [tag],
    security: [],
    ...(paidUsd === undefined ? {} : { 'x-payment-info': paymentInfo(paidUsd) }),
    parameters: parametersOf(path, operation),
    ...(body && { requestBody: { required: true, content: requestContent(body, example, publish) } }),
    responses,
  };
  return detail as unknown as DocumentDecoration;
}

/** Statuses of errors that say when to try again. */
const WAITS: ReadonlySet<number> = new Set(
  ERROR_CODES.map((code): ErrorEntry => ERRORS[code]).flatMap(({ status, retryAfterSeconds }) =>
    retryAfterSeconds === undefined ? [] : [status],
  ),
);

const RETRY_AFTER = {
  'Retry-After': {
    description: 'Seconds to wait, where waiting helps: see /api/errors.',
    schema: Type.Integer({ minimum: 0 }),
  },
};

export const errorsOf = ({ errors = {} }: Operation) => ({ ...errors, 500: 'The service failed.' });

export function parametersOf(path: string, { id, query }: Operation) {
  const [, name = ''] = /:(\w+)/.exec(path) ?? [];
  const inPath = id && {
    name,
    description: id.description,
    in: 'path',
    required: true,
    schema: Type.String(),
  };
  const inQuery = query && {
    in: 'query',
    name: query.name,
    required: false,
    schema: Type.Integer({ minimum: query.min, maximum: query.max, default: query.default }),
    description: query.description,
  };
  return [inPath, inQuery].filter((parameter) => parameter !== undefined);
}

export const UNPAID = 'Payment required, or the payment is refused: `error` says why.';

const challenge = (publish: Publish) => ({
  ...response(UNPAID, ChallengeBody, publish),
  headers: {
    'PAYMENT-REQUIRED': {
      description: 'The challenge of x402 version 2: base64 of JSON.',
      schema: Type.String(),
    },
  },
});

/** As directories of paid services read it. */
function paymentInfo(amount: string) {
  return { price: { mode: 'fixed', currency: 'USD', amount }, protocols: [{ x402: {} }] };
}

function response(description: string, body: TSchema | string | null, publish: Publish) {
  return { description, ...(body === null ? {} : { content: contentOf(body, publish) }) };
}

function contentOf(body: TSchema | string, publish: Publish) {
  if (typeof body === 'string') return { [body]: { schema: Type.String() } };
  return { [JSON_TYPE]: { schema: publish(body) } };
}

/** Postman reads the example of the media type, Insomnia that of its schema, beside a `$ref` too. */
const requestContent = (body: TSchema, example: unknown, publish: Publish) => ({
  [JSON_TYPE]: { schema: { ...publish(body), example }, example },
});
