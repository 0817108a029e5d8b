// POST /mcp: streamable HTTP without sessions (Model Context Protocol, 2025-11-25), one JSON-RPC 2.0 message a request, a
// JSON answer to each. Messages are judged by their envelope here; what is in `params` is the SDK's and the routes' to
// judge. Browsers of any origin may call it, as they may call the routes: there is no session to steal.
import { Type } from '@sinclair/typebox';
import type { Facts } from '#src/discovery/facts.ts';
import { ROUTES } from '#src/discovery/routes.ts';
import { FACTORS, LIMITS } from '#src/domain/limits.ts';
import { isRefused, type Refused } from '#src/domain/refusal.ts';
import { Closed, Nullable } from '#src/domain/schema-parts.ts';
import { type Endpoint, endpoint, PART_UNAVAILABLE } from '#src/http/endpoint.ts';
import {
  type BodyRefused,
  limitRate,
  type ParseDeps,
  rateRule,
  readBody,
  readJson,
} from '#src/http/request/parse-request.ts';
import type { Routed } from '#src/http/request/pipeline.ts';
import { contextOf } from '#src/http/request/request-context.ts';
import { type SchemaCheck, schemaCheck } from '#src/http/request/validation.ts';
import { STATUS } from '#src/http/response/errors.ts';
import { json } from '#src/http/response/json.ts';
import type { Logger } from '#src/ports/logger.ts';

/** As the SDK has them (a test compares), newest first: the SDK itself is loaded at the first message. */
export const MCP_VERSIONS = ['2025-11-25', '2025-06-18', '2025-03-26', '2024-11-05', '2024-10-07'] as const;

const Id = Type.Union([Type.String(), Type.Integer()]);
const Version = Type.Literal('2.0');

const McpMessage = Closed({
  jsonrpc: Version,
  id: Type.Optional(Type.Union(Id.anyOf, { description: 'Absent: a notification, answered 202.' })),
  method: Type.String({ description: 'Such as initialize, tools/list, tools/call.' }),
  params: Type.Optional(
    Type.Object(
      {},
      { description: 'Of tools/call: `name`, `arguments`, and for paid tools `_meta["x402/payment"]`.' },
    ),
  ),
});
export type McpMessage = typeof McpMessage.static;

const envelope = schemaCheck(McpMessage);

/** Responses are refused with the rest: this server sends no requests to its clients. */
const mcpMessage: SchemaCheck<typeof McpMessage> = {
  ...envelope,
  faults: (value) =>
    Array.isArray(value)
      ? [{ path: '', message: 'A batch: send one message a request' }]
      : envelope.faults(value),
};

const McpAnswer = Closed({
  jsonrpc: Version,
  id: Nullable(Id),
  result: Type.Optional(
    Type.Object(
      {},
      {
        description:
          'As the protocol has it. Of tools/call: `content`, `structuredContent` (fits the outputSchema of the tool), `isError` (refused, failed, or not paid for) and `_meta["x402/payment-response"]` (the settlement, as in PAYMENT-RESPONSE).',
      },
    ),
  ),
  error: Type.Optional(
    Closed({
      code: Type.Integer({ description: 'JSON-RPC 2.0 §5.1.' }),
      message: Type.String(),
      data: Type.Optional(
        Type.Unknown({ description: 'Of a refusal: `code` as in other answers, and `details`.' }),
      ),
    }),
  ),
});

/** JSON-RPC 2.0 §5.1; the last is the first of those that a server may use as it likes. */
const [PARSE_ERROR, INVALID_REQUEST, INVALID_PARAMS, SERVER_ERROR] = [
  -32700, -32600, -32602, -32000,
] as const;

const callParams = schemaCheck(
  Type.Object({ name: Type.String(), arguments: Type.Optional(Type.Record(Type.String(), Type.Unknown())) }),
);

/** null: it is not one. The SDK would call it a failure of the server. */
function malformedCall({ id, method, params = {} }: McpMessage): Response | null {
  if (method !== 'tools/call' || id === undefined || callParams.matches(params)) return null;
  const data = { code: 'invalid_request', details: callParams.faults(params) };
  const error = {
    code: INVALID_PARAMS,
    message: 'tools/call takes a name and an object of arguments.',
    data,
  };
  return json(200, { jsonrpc: '2.0', id, error });
}

type EnvelopeRefused = BodyRefused | Refused<'body_too_large' | 'body_timeout' | 'rate_limited'>;

const RPC_CODES: Partial<Record<EnvelopeRefused['refused'], number>> = {
  invalid_json: PARSE_ERROR,
  invalid_request: INVALID_REQUEST,
};

/** The answer to a message that was not read: its id is unknown. */
function envelopeRefusal(refusal: EnvelopeRefused): Response {
  const { refused: code, message, details, retryAfterSeconds } = refusal;
  // What is undefined is left out of JSON.
  const data = { code, details, retryAfterSeconds };
  const error = { code: RPC_CODES[code] ?? SERVER_ERROR, message, data };
  const headers = retryAfterSeconds === undefined ? {} : { 'retry-after': String(retryAfterSeconds) };
  return json(STATUS[code], { jsonrpc: '2.0', id: null, error }, headers);
}

const BODY = { maxBytes: LIMITS.mcpMessageBytes.max, arrivalMs: LIMITS.requestBodyArrivalMs.max };

export type McpDeps = ParseDeps & {
  readonly logger: Logger;
  readonly settings: { readonly rateLimitPerMinute: number };
};

/** `endpoints`: of which some are tools. `route`: routes a request to them, so that a tool does what its route does. */
export function mcpRoutes(
  deps: McpDeps,
  facts: Facts,
  endpoints: readonly Endpoint[],
  route: Routed,
): Endpoint[] {
  // Reading a message costs, whatever is in it; a tool's own rate is its route's.
  const rates = [rateRule('mcp', deps.settings.rateLimitPerMinute * FACTORS.generousRate)];
  let loading: Promise<(message: McpMessage, request: Request) => Promise<Response>> | undefined;
  // The SDK takes a tenth of a second to load.
  const load = async () => (await import('./server.ts')).mcpServer(facts, endpoints, route, deps.logger);
  return [
    endpoint(ROUTES.mcp, operation, async ({ request }) => {
      const limited = await limitRate(deps.quota, rates, contextOf(request));
      if (limited !== null) return envelopeRefusal(limited);
      const bytes = await readBody(request, deps.clock, BODY);
      if (!(bytes instanceof Uint8Array)) return envelopeRefusal(bytes);
      const parsed = readJson(bytes, request.headers, mcpMessage, LIMITS.mcpMessageDepth.max);
      if (isRefused(parsed)) return envelopeRefusal(parsed);
      const malformed = malformedCall(parsed.body);
      if (malformed !== null) return malformed;
      loading ??= load();
      return (await loading)(parsed.body, request);
    }),
  ];
}

const operation = {
  body: McpMessage,
  example: { jsonrpc: '2.0', id: 1, method: 'tools/list' },
  answers: {
    200: ['The answer to the request. A refused or unpaid tool call is a result with isError.', McpAnswer],
    202: ['The notification was taken.', null],
    400: ['No JSON, no message of the protocol, a batch, or an unsupported protocol version.', McpAnswer],
    406: ['The client must accept application/json and text/event-stream.', McpAnswer],
    408: ['The body did not arrive in time.', McpAnswer],
    413: ['The body is too large.', McpAnswer],
    415: ['The body is not application/json.', McpAnswer],
    429: ['Too many messages from this address: see Retry-After.', McpAnswer],
  } as const,
  errors: { 503: PART_UNAVAILABLE },
};
