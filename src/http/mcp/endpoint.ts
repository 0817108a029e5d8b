// POST /mcp: streamable HTTP without sessions (Model Context Protocol, 2025-11-25), one JSON-RPC 2.0 message a request, a
// JSON answer to each. A message that is no JSON-RPC request is refused as any other body is; what is in `params` is the
// SDK's and the routes' to judge. Browsers of any origin may call it, as they may call the routes: there is no session to steal.
import { Type } from '@sinclair/typebox';
import type { Facts } from '#src/discovery/facts.ts';
import { ROUTES } from '#src/discovery/routes.ts';
import { FACTORS, LIMITS } from '#src/domain/limits.ts';
import { isRefused } from '#src/domain/refusal.ts';
import { type Endpoint, endpoint, PART_UNAVAILABLE } from '#src/http/endpoint.ts';
import { BODY_ERRORS, type ParseDeps, parseRequest, rateRule } from '#src/http/request/parse-request.ts';
import type { Routed } from '#src/http/request/pipeline.ts';
import { schemaCheck } from '#src/http/request/validation.ts';
import { ErrorBody } from '#src/http/response/errors.ts';
import { json } from '#src/http/response/json.ts';
import { lazily } from '#src/lib/lazily.ts';
import type { Logger } from '#src/ports/logger.ts';
import { McpAnswer, McpMessage } from './message.ts';

/** As the SDK has them (a test compares), newest first: the SDK itself is loaded at the first message. */
export const MCP_VERSIONS = ['2025-11-25', '2025-06-18', '2025-03-26', '2024-11-05', '2024-10-07'] as const;

const callParams = schemaCheck(
  Type.Object({ name: Type.String(), arguments: Type.Optional(Type.Record(Type.String(), Type.Unknown())) }),
);
/** JSON-RPC 2.0 §5.1. */
const INVALID_PARAMS = -32602;

/** null: it is not one. The SDK would call it a failure of the server. */
function malformedCall({ id, method, params = {} }: McpMessage): Response | null {
  if (method !== 'tools/call' || id === undefined || callParams.matches(params)) return null;
  const data = { code: 'invalid_request', details: callParams.faults(params) };
  const message = 'tools/call takes a name and an object of arguments.';
  return json(200, { jsonrpc: '2.0', id, error: { code: INVALID_PARAMS, message, data } });
}

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
  const rules = {
    // Reading a message costs, whatever is in it; a tool's own rate is its route's.
    rates: [rateRule('mcp', deps.settings.rateLimitPerMinute * FACTORS.generousRate)],
    check: schemaCheck(McpMessage),
    maxBytes: LIMITS.mcpMessageBytes.max,
    maxDepth: LIMITS.mcpMessageDepth.max,
  };
  // The SDK takes a tenth of a second to load.
  const server = lazily(async () =>
    (await import('./server.ts')).mcpServer(facts, endpoints, route, deps.logger),
  );
  return [
    endpoint(ROUTES.mcp, operation, async ({ request }) => {
      const parsed = await parseRequest(deps, request, rules);
      if (isRefused(parsed)) return parsed;
      const malformed = malformedCall(parsed.body);
      if (malformed !== null) return malformed;
      return (await server())(parsed.body, request);
    }),
  ];
}

const operation = {
  body: McpMessage,
  example: { jsonrpc: '2.0', id: 1, method: 'tools/list' },
  answers: {
    200: ['The answer to the request. A refused or unpaid tool call is a result with isError.', McpAnswer],
    202: ['The notification was taken.', null],
    400: [
      'No JSON, no message of the protocol, a batch, or an unsupported protocol version.',
      Type.Union([ErrorBody, McpAnswer]),
    ],
    406: ['The client must accept application/json and text/event-stream.', McpAnswer],
  } as const,
  errors: { ...BODY_ERRORS, 503: PART_UNAVAILABLE },
};
