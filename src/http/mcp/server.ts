// The MCP server over the routes. A call of a tool is a call of its route, by the same caller: limits, refusals, payment
// and replay are the route's. Payment: x402, transport MCP (specs/transports-v2/mcp.md), tool-result binding.
import { Server } from '@modelcontextprotocol/sdk/server/index.js';
import { WebStandardStreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/webStandardStreamableHttp.js';
import {
  CallToolRequestSchema,
  type CallToolResult,
  ErrorCode,
  ListToolsRequestSchema,
  McpError,
} from '@modelcontextprotocol/sdk/types.js';
import { AjvJsonSchemaValidator } from '@modelcontextprotocol/sdk/validation/ajv';
import { Type } from '@sinclair/typebox';
import type { Facts } from '#src/discovery/facts.ts';
import { MCP_TOOLS, serverInstructions, type ToolFacts, type ToolName } from '#src/discovery/mcp-tools.ts';
import { fromBase64url, fromUtf8, toBase64url, utf8 } from '#src/domain/encoding.ts';
import { SERVICE } from '#src/domain/limits.ts';
import type { Routed } from '#src/http/request/pipeline.ts';
import { contextOf, setContext } from '#src/http/request/request-context.ts';
import { invalidRequest, schemaCheck } from '#src/http/request/validation.ts';
import { ErrorBody, faultAnswer, refusalAnswer } from '#src/http/response/errors.ts';
import type { Logger } from '#src/ports/logger.ts';
import type { McpMessage } from './messages.ts';
import { listedTools, TOOL_FORMS } from './tools.ts';

/** Answers one message. */
export function mcpServer(facts: Facts, route: Routed, logger: Logger) {
  const tools = [...listedTools(facts)];
  const options = {
    capabilities: { tools: {} },
    instructions: serverInstructions(facts),
    // One for all: to make one costs more than to answer, and no tool of ours needs it.
    jsonSchemaValidator: new AjvJsonSchemaValidator(),
  };
  return async (message: McpMessage, request: Request): Promise<Response> => {
    // A server for each message: the SDK's holds the state of one connection.
    const server = new Server(SERVICE, options);
    server.setRequestHandler(ListToolsRequestSchema, () => ({ tools }));
    server.setRequestHandler(CallToolRequestSchema, async ({ params }) => {
      const tool: Tool | undefined = MCP_TOOLS.find(({ name }) => name === params.name);
      if (tool === undefined) throw new McpError(ErrorCode.InvalidParams, 'Unknown tool: see tools/list');
      try {
        return await resultOf(tool, await callRoute(tool, message, request, route));
      } catch (cause) {
        logger.error('a tool failed outside its route', { requestId: contextOf(request).id, cause });
        return resultOf(tool, faultAnswer(cause));
      }
    });
    const transport = new WebStandardStreamableHTTPServerTransport({ enableJsonResponse: true });
    await server.connect(transport);
    return transport.handleRequest(request, { parsedBody: message });
  };
}

const PAYMENT = 'x402/payment';
const PAYMENT_RESPONSE = 'x402/payment-response';

type Tool = ToolFacts & { readonly name: ToolName };

const record = schemaCheck(Type.Record(Type.String(), Type.Unknown()));
const errorBody = schemaCheck(ErrorBody);
const checks = new Map(MCP_TOOLS.map(({ name }) => [name, schemaCheck(TOOL_FORMS[name].input)]));

/** The arguments are those of the message: the SDK's copy of them leaves out a property `__proto__`. */
function callRoute(tool: Tool, message: McpMessage, outer: Request, route: Routed): Promise<Response> {
  const given = member(message.params, 'arguments') ?? {};
  const headers = new Headers();
  const via = outer.headers.get('via');
  if (via !== null) headers.set('via', via);
  if (tool.route.method === 'POST') {
    headers.set('content-type', 'application/json');
    setPayment(member(member(message.params, '_meta'), PAYMENT), headers);
    const init = { method: 'POST', body: JSON.stringify(given), headers };
    return sameCaller(new Request(urlOf(tool.route.path), init), outer, route);
  }
  const faults = checks.get(tool.name)?.faults(given) ?? [];
  if (faults.length > 0) return Promise.resolve(refusalAnswer(invalidRequest(faults)));
  const path = tool.route.path.replace(/:([A-Za-z]+)/g, (_, name) =>
    encodeURIComponent(String(member(given, name))),
  );
  return sameCaller(new Request(urlOf(path), { headers }), outer, route);
}

/** The same client and request id; headers of the answer and what operators see belong to the outer request. */
function sameCaller(request: Request, outer: Request, route: Routed): Promise<Response> {
  const { id, client } = contextOf(outer);
  setContext(request, { id, client, headers: new Map(), route: null });
  return route(request);
}

const urlOf = (path: string) => `http://localhost${path}`;

function member(of: unknown, name: string): unknown {
  return record.matches(of) && Object.hasOwn(of, name) ? of[name] : undefined;
}

/** Any value counts as a payment, readable or not, as a header does; null is none. */
function setPayment(payment: unknown, headers: Headers): void {
  if (payment === undefined || payment === null) return;
  const header = member(payment, 'x402Version') === 1 ? 'x-payment' : 'payment-signature';
  headers.set(header, toBase64url(utf8(JSON.stringify(payment))));
}

async function resultOf({ paid }: Tool, response: Response): Promise<CallToolResult> {
  const { status, headers } = response;
  const text = await response.text();
  const body: unknown = JSON.parse(text);
  // A target that failed is a paid, receipted result: the payer must not take it for a refusal.
  if (status === 200 || (paid && status === 502)) return result(body, text, headers);
  const challenge = headers.get('payment-required');
  if (status === 402 && challenge !== null) {
    const required = decoded(challenge);
    return { ...result(required, JSON.stringify(required), headers), isError: true };
  }
  return refusal(body, headers.get('retry-after'));
}

function result(body: unknown, text: string, headers: Headers): CallToolResult {
  if (!record.matches(body)) throw new Error('an answer is no JSON object');
  const settled = headers.get('x-payment-response') ?? headers.get('payment-response');
  return {
    content: [{ type: 'text', text }],
    structuredContent: body,
    isError: false,
    ...(settled === null ? {} : { _meta: { [PAYMENT_RESPONSE]: decoded(settled) } }),
  };
}

/** `code`, then sentences that a model which sees the text alone can act on. */
function refusal(body: unknown, retryAfter: string | null): CallToolResult {
  if (!errorBody.matches(body)) throw new Error('a refusal has no error body');
  const { error } = body;
  const retryAfterSeconds = retryAfter === null ? null : Number(retryAfter);
  const sentences = [
    `${error.code}: ${error.message}`,
    ...(error.details === undefined ? [] : [`Details: ${JSON.stringify(error.details)}`]),
    ...(retryAfterSeconds === null ? [] : [`Try again in ${retryAfterSeconds} seconds.`]),
    ...(error.code === 'payment_unconfirmed' ? [SAME_PAYMENT] : []),
  ];
  return {
    content: [{ type: 'text', text: sentences.join('\n') }],
    structuredContent: { error, ...(retryAfterSeconds === null ? {} : { retryAfterSeconds }) },
    isError: true,
  };
}

const SAME_PAYMENT =
  'Repeat this call with the same _meta["x402/payment"]. A new payment could be charged as well.';

/** Base64 of JSON, as in x402's headers. */
function decoded(header: string): unknown {
  const bytes = fromBase64url(header.replaceAll('+', '-').replaceAll('/', '_').replace(/=+$/, ''));
  const text = bytes === null ? null : fromUtf8(bytes);
  if (text === null) throw new Error('a payment header of ours is no base64 of text');
  return JSON.parse(text);
}
