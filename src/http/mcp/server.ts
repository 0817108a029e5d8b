// The MCP server on the wire: streamable HTTP without sessions (Model Context Protocol, 2025-11-25), a JSON answer to
// each message. Browsers of any origin may call, as they may call the routes: there is no session to steal.
import { Server } from '@modelcontextprotocol/sdk/server/index.js';
import { WebStandardStreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/webStandardStreamableHttp.js';
import {
  CallToolRequestSchema,
  ErrorCode,
  ListToolsRequestSchema,
  McpError,
} from '@modelcontextprotocol/sdk/types.js';
import { AjvJsonSchemaValidator } from '@modelcontextprotocol/sdk/validation/ajv';
import { Elysia } from 'elysia';
import { serverInstructions } from '#src/discovery/mcp-tools.ts';
import { ROUTES } from '#src/discovery/routes.ts';
import { LIMITS, SERVICE } from '#src/domain/limits.ts';
import { isRefused } from '#src/domain/refusal.ts';
import { describe } from '#src/http/openapi/operation.ts';
import { limitRate, type ParseDeps, rateRule, readBody, readJson } from '#src/http/request/parse-request.ts';
import type { Routed } from '#src/http/request/pipeline.ts';
import { contextOf } from '#src/http/request/request-context.ts';
import { type DocumentDeps, documentFacts } from '#src/http/routes/document-facts.ts';
import type { Logger } from '#src/ports/logger.ts';
import { callTool, findTool } from './call.ts';
import { envelopeRefusal, McpAnswer, McpMessage, McpRefusal, malformedCall, mcpMessage } from './messages.ts';
import { listedTools } from './tools.ts';

const { requestBodyBytes, requestBodyArrivalMs, jsonDepth, mcpEnvelope } = LIMITS;
const BODY = { maxBytes: requestBodyBytes + mcpEnvelope.bytes, arrivalMs: requestBodyArrivalMs };
const DEPTH = jsonDepth + mcpEnvelope.levels;

/** `route`: the HTTP room's own routes, so that a tool does what its route does. */
export type McpDeps = DocumentDeps & ParseDeps & { readonly logger: Logger };

export function mcpRoutes(deps: McpDeps, route: Routed) {
  const serverFor = servers(deps, route);
  // To read a message costs, whatever is in it; a tool's own rate is its route's.
  const rates = [rateRule('mcp', deps.settings.rateLimitPerMinute * LIMITS.generousRateFactor)];
  return new Elysia().post(
    ROUTES.mcp.path,
    async ({ request }) => {
      const limited = await limitRate(deps.quota, rates, contextOf(request));
      if (limited !== null) return envelopeRefusal(limited);
      const bytes = await readBody(request, deps.clock, BODY);
      if (!(bytes instanceof Uint8Array)) return envelopeRefusal(bytes);
      const message = readJson(bytes, request.headers, mcpMessage, DEPTH);
      if (isRefused(message)) return envelopeRefusal(message);
      const malformed = malformedCall(message.body);
      if (malformed !== null) return malformed;
      const transport = new WebStandardStreamableHTTPServerTransport({ enableJsonResponse: true });
      await serverFor(request, message.body).connect(transport);
      return transport.handleRequest(request, { parsedBody: message.body });
    },
    { parse: 'none', ...describe(ROUTES.mcp, operation) },
  );
}

/** A server for each message: the SDK's holds what belongs to one connection. */
function servers(deps: McpDeps, route: Routed) {
  const facts = documentFacts(deps);
  const tools = [...listedTools(facts)];
  const options = {
    capabilities: { tools: {} },
    instructions: serverInstructions(facts),
    // One for all: to make one costs more than to answer, and no tool of ours asks for it.
    jsonSchemaValidator: new AjvJsonSchemaValidator(),
  };
  return (request: Request, message: McpMessage): Server => {
    const server = new Server(SERVICE, options);
    const tell = (cause: unknown) =>
      deps.logger.error('a tool failed outside its route', { requestId: contextOf(request).id, cause });
    server.setRequestHandler(ListToolsRequestSchema, () => ({ tools }));
    server.setRequestHandler(CallToolRequestSchema, ({ params }) => {
      const tool = findTool(params.name);
      if (tool === undefined) throw new McpError(ErrorCode.InvalidParams, 'Unknown tool: see tools/list');
      return callTool(tool, message, request, route, tell);
    });
    return server;
  };
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
