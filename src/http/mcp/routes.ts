// POST /mcp: streamable HTTP without sessions (Model Context Protocol, 2025-11-25), a JSON answer to each message.
// Browsers of any origin may call it, as they may call the routes: there is no session to steal.
import { Elysia } from 'elysia';
import type { Facts } from '#src/discovery/facts.ts';
import { ROUTES } from '#src/discovery/routes.ts';
import { FACTORS, LIMITS } from '#src/domain/limits.ts';
import { isRefused } from '#src/domain/refusal.ts';
import { describe } from '#src/http/openapi/operation.ts';
import { limitRate, type ParseDeps, rateRule, readBody, readJson } from '#src/http/request/parse-request.ts';
import type { Routed } from '#src/http/request/pipeline.ts';
import { contextOf } from '#src/http/request/request-context.ts';
import type { Logger } from '#src/ports/logger.ts';
import { envelopeRefusal, McpAnswer, McpMessage, McpRefusal, malformedCall, mcpMessage } from './messages.ts';

const BODY = { maxBytes: LIMITS.mcpMessageBytes.max, arrivalMs: LIMITS.requestBodyArrivalMs.max };

export type McpDeps = ParseDeps & {
  readonly logger: Logger;
  readonly settings: { readonly rateLimitPerMinute: number };
};

/** `route`: the routes of this application, so that a tool does what its route does. */
export function mcpRoutes(deps: McpDeps, facts: Facts, route: Routed) {
  // Reading a message costs, whatever is in it; a tool's own rate is its route's.
  const rates = [rateRule('mcp', deps.settings.rateLimitPerMinute * FACTORS.generousRate)];
  let loading: Promise<(message: McpMessage, request: Request) => Promise<Response>> | undefined;
  // The SDK takes a tenth of a second to load.
  const load = async () => (await import('./server.ts')).mcpServer(facts, route, deps.logger);
  return new Elysia().post(
    ROUTES.mcp.path,
    async ({ request }) => {
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
    },
    { parse: 'none', ...describe(ROUTES.mcp, operation) },
  );
}

const operation = {
  body: McpMessage,
  answers: {
    200: ['The answer to the request. A refused or unpaid tool call is a result with isError.', McpAnswer],
    202: ['The notification was taken.', null],
    400: ['No JSON, no message of the protocol, a batch, or an unsupported protocol version.', McpRefusal],
    406: ['The client must accept application/json and text/event-stream.', McpRefusal],
    408: ['The body did not arrive in time.', McpRefusal],
    413: ['The body is too large.', McpRefusal],
    415: ['The body is not application/json.', McpRefusal],
    429: ['Too many messages from this address: see Retry-After.', McpRefusal],
  } as const,
  errors: { 503: 'A part of the service is unavailable: see error.code.' },
};
