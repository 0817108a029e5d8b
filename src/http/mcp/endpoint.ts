// POST /mcp: streamable HTTP without sessions (Model Context Protocol, 2026-07-28 and before), one JSON-RPC 2.0 message a
// request, a JSON answer to each. A message that is no JSON-RPC request is refused as any other body is; what is in `params` is the
// SDK's and the routes' to judge. Browsers of any origin may call it, as they may call the routes: there is no session to steal.
import { Type } from '@sinclair/typebox';
import type { Facts } from '#src/discovery/facts.ts';
import { ROUTES } from '#src/discovery/routes.ts';
import { FACTORS, LIMITS } from '#src/domain/limits.ts';
import { isRefused, type Refused } from '#src/domain/refusal.ts';
import { type Endpoint, type EndpointCall, endpoint, PART_UNAVAILABLE } from '#src/http/endpoint.ts';
import { BODY_ERRORS, type ParseDeps, parseRequest, rateRule } from '#src/http/request/parse-request.ts';
import type { Routed } from '#src/http/request/pipeline.ts';
import { schemaCheck } from '#src/http/request/validation.ts';
import { ErrorBody } from '#src/http/response/errors.ts';
import { json } from '#src/http/response/json.ts';
import { lazily } from '#src/lib/lazily.ts';
import type { Logger } from '#src/ports/logger.ts';
import { McpAnswer, McpMessage } from './message.ts';

/** As the SDK has them (a test compares), newest first: the SDK itself is loaded at the first message. */
export const MCP_VERSIONS = [
  '2026-07-28',
  '2025-11-25',
  '2025-06-18',
  '2025-03-26',
  '2024-11-05',
  '2024-10-07',
] as const;

const callParams = schemaCheck(
  Type.Object({ name: Type.String(), arguments: Type.Optional(Type.Record(Type.String(), Type.Unknown())) }),
);
/** JSON-RPC 2.0 §5.1. */
const INVALID_PARAMS = -32602;
const SERVER_ERROR = -32000;

/** RFC 9110 §12.5.1: the quality of the most specific range that matches decides; without the header all is acceptable. */
function acceptsJson(accept: string | null): boolean {
  if (accept === null || accept.trim() === '') return true;
  const ranges = accept
    .toLowerCase()
    .split(',')
    .map((range) => range.split(';').map((part) => part.trim()));
  for (const wanted of ['application/json', 'application/*', '*/*']) {
    const matching = ranges.filter(([type]) => type === wanted);
    if (matching.length > 0)
      return matching.some((parts) => !parts.some((part) => /^q=0(\.0*)?$/.test(part)));
  }
  return false;
}

function notAcceptable({ id }: McpMessage): Response {
  const message = 'The answer is application/json, which the Accept header excludes.';
  return json(406, { jsonrpc: '2.0', id: id ?? null, error: { code: SERVER_ERROR, message } });
}

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
    part: '/params/arguments',
  };
  // The SDK takes a tenth of a second to load.
  const server = lazily(async () =>
    (await import('./server.ts')).mcpServer(facts, endpoints, route, deps.logger),
  );
  async function answer({ request }: EndpointCall): Promise<Response | Refused> {
    const parsed = await parseRequest(deps, request, rules);
    if (isRefused(parsed)) return parsed;
    if (!acceptsJson(request.headers.get('accept'))) return notAcceptable(parsed.body);
    const malformed = malformedCall(parsed.body);
    if (malformed !== null) return malformed;
    return (await server())(parsed.body, request);
  }
  return [endpoint(ROUTES.mcp, operation, answer), endpoint(ROUTES.mcpSlash, null, answer)];
}

const operation = {
  body: McpMessage,
  example: { jsonrpc: '2.0', id: 1, method: 'tools/list' },
  answers: {
    200: ['The answer to the request. A refused or unpaid tool call is a result with isError.', McpAnswer],
    202: ['The notification was taken.', null],
    400: [
      'No JSON, no message of the protocol, a batch, an unsupported protocol version, or headers that differ from the body.',
      Type.Union([ErrorBody, McpAnswer]),
    ],
    404: ['Revision 2026-07-28 and later: there is no such method.', McpAnswer],
    406: ['The Accept header excludes application/json.', McpAnswer],
  } as const,
  errors: { ...BODY_ERRORS, 503: PART_UNAVAILABLE },
};
