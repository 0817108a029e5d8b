// The MCP server over the routes. A call of a tool is a call of its route, by the same caller: limits, refusals, payment
// and replay are the route's. Payment: x402, transport MCP (specs/transports-v2/mcp.md), tool-result binding.
import {
  type CallToolResult,
  createMcpHandler,
  isLegacyRequest,
  METHOD_NOT_FOUND,
  ProtocolError,
  ProtocolErrorCode,
  Server,
  type Tool,
  type ToolAnnotations,
  WebStandardStreamableHTTPServerTransport,
} from '@modelcontextprotocol/server';
import { AjvJsonSchemaValidator } from '@modelcontextprotocol/server/validators/ajv';
import { type TSchema, Type } from '@sinclair/typebox';
import { methodAndPath } from '#src/discovery/document.ts';
import {
  isExecution,
  type McpTool,
  mcpTools,
  serverInstructions,
  toolDescription,
} from '#src/discovery/documents/mcp.ts';
import type { Facts } from '#src/discovery/facts.ts';
import { fromBase64, fromUtf8, toBase64, utf8 } from '#src/domain/encoding.ts';
import { SERVICE } from '#src/domain/limits.ts';
import { portableSchema } from '#src/domain/portable-schema.ts';
import { Closed, Count } from '#src/domain/schema-parts.ts';
import type { Endpoint, Operation } from '#src/http/endpoint.ts';
import type { Routed } from '#src/http/request/pipeline.ts';
import { REPRESENTATION } from '#src/http/request/preference.ts';
import { contextOf, setContext } from '#src/http/request/request-context.ts';
import { invalidRequest, type SchemaCheck, schemaCheck } from '#src/http/request/validation.ts';
import { ErrorBody, faultAnswer, refusalAnswer } from '#src/http/response/errors.ts';
import { json } from '#src/http/response/json.ts';
import type { Logger } from '#src/ports/logger.ts';
import type { McpMessage } from './message.ts';

export function mcpServer(facts: Facts, endpoints: readonly Endpoint[], route: Routed, logger: Logger) {
  const served = mcpTools(facts).map((tool) => servedTool(tool, endpoints, facts));
  const tools = served.map((tool) => listedTool(tool, facts));
  const options = {
    capabilities: { tools: {} },
    instructions: serverInstructions(facts),
    // One for all: to make one costs more than to answer, and no tool of ours needs it.
    jsonSchemaValidator: new AjvJsonSchemaValidator(),
  };
  /** For one message: the SDK's server holds the state of one connection. */
  function serverFor(message: McpMessage, request: Request): Server {
    const server = new Server(SERVICE, options);
    server.setRequestHandler('tools/list', () => ({ tools }));
    server.setRequestHandler('tools/call', async ({ params }) => {
      const tool = served.find(({ name }) => name === params.name);
      if (tool === undefined)
        throw new ProtocolError(ProtocolErrorCode.InvalidParams, 'Unknown tool: see tools/list');
      try {
        return await resultOf(tool, await callRoute(tool, message, request, route));
      } catch (cause) {
        logger.bug('a tool failed outside its route', { requestId: contextOf(request).id, cause });
        return resultOf(tool, faultAnswer(cause));
      }
    });
    return server;
  }
  return (message: McpMessage, request: Request) =>
    answer(message, request, () => serverFor(message, request));
}

/** Both generations of the protocol at one address: revisions with `initialize`, and 2026-07-28, which has no connections. */
async function answer(message: McpMessage, request: Request, server: () => Server): Promise<Response> {
  // Without the caller's body and signal: a paid call is completed after the caller has gone.
  const headers = new Headers(request.headers);
  // The answer is always JSON, and the endpoint has checked that this is acceptable; the SDK insists on both types.
  headers.set('accept', 'application/json, text/event-stream');
  const received = new Request(request.url, { method: 'POST', headers });
  if (await isLegacyRequest(received, message)) {
    const transport = new WebStandardStreamableHTTPServerTransport({ enableJsonResponse: true });
    await server().connect(transport);
    return transport.handleRequest(received, { parsedBody: message });
  }
  // No notifications are sent, and a stream of none would occupy a connection without end.
  if (message.method === 'subscriptions/listen') {
    const error = { code: METHOD_NOT_FOUND, message: 'Method not found' };
    return json(404, { jsonrpc: '2.0', id: message.id ?? null, error });
  }
  return createMcpHandler(server, { legacy: 'reject' }).fetch(received, { parsedBody: message });
}

const PAYMENT = 'x402/payment';
const PAYMENT_ERROR = 'x402/error';
const PAYMENT_RESPONSE = 'x402/payment-response';

/** `input`: the body of the route's POST, or what its path has a parameter for. `output`: the route's answer. */
type ServedTool = McpTool & {
  readonly input: SchemaCheck<TSchema>;
  readonly output: TSchema;
  /** Its argument `returnResponse` is the header Prefer of the route. */
  readonly returnsResponse: boolean;
};

/** An argument of a tool alone: it is no part of the request, and of no repeat. */
const RETURN_RESPONSE = 'returnResponse';
const ReturnResponse = Type.Optional(
  Type.Boolean({
    default: false,
    description:
      'true: the first result of this call has what the target answered, in `response`. It is never stored, and a replay has none.',
  }),
);

function servedTool(tool: McpTool, endpoints: readonly Endpoint[], facts: Facts): ServedTool {
  const called = endpoints.find(({ route }) => methodAndPath(route) === methodAndPath(tool.route));
  const { id, body, answers } = called?.operation ?? {};
  const output = (answers?.[200] ?? answers?.[201])?.[1];
  if (typeof output !== 'object' || output === null)
    throw new Error(`${tool.name} has no route with a schema`);
  const input = schemaCheck<TSchema>(body ?? Closed(id === undefined ? {} : { id: idSchema(id) }));
  return { ...tool, input, output, returnsResponse: facts.returnsResponses && isExecution(tool) };
}

/** A text of another form is the route's to judge: it refuses it as a record that is not there. */
const idSchema = ({ description }: NonNullable<Operation['id']>) => Type.String({ description });

function listedTool(tool: ServedTool, facts: Facts): Tool {
  const { name, title, route, output } = tool;
  // The SDK's client holds results with isError against the schema as well: they are in it.
  const outputs = [output, ToolError, ...(route.paid ? [PaymentRequired] : [])];
  return {
    name,
    title,
    description: toolDescription(tool, facts),
    inputSchema: { ...portableSchema(inputSchemaOf(tool)), type: 'object' },
    outputSchema: { type: 'object', anyOf: outputs.map((of) => portableSchema(of)) },
    annotations: { title, ...annotationsOf(tool) },
  };
}

function inputSchemaOf({ input: { schema }, returnsResponse }: ServedTool): TSchema {
  if (!returnsResponse) return schema;
  return { ...schema, properties: { ...schema.properties, [RETURN_RESPONSE]: ReturnResponse } };
}

/** An execution may delete something at the target, and does so twice if it is repeated without an idempotency key. */
function annotationsOf({ name, route: { paid } }: McpTool): ToolAnnotations {
  const readOnlyHint = !paid && name !== 'decide_webhook';
  return { readOnlyHint, destructiveHint: paid, idempotentHint: readOnlyHint, openWorldHint: paid };
}

const ToolError = Closed(
  { error: ErrorBody.properties.error, retryAfterSeconds: Type.Optional(Count) },
  'With isError: refused or failed.',
);

/** As x402 version 2 has it; open, as its extensions are. */
const PaymentRequired = Type.Object(
  {
    x402Version: Type.Literal(2),
    error: Type.Optional(Type.String()),
    accepts: Type.Array(Type.Object({})),
  },
  {
    description:
      'With isError: not paid for, or the payment is refused. Pay one of `accepts` and call again.',
  },
);

const record = schemaCheck(Type.Record(Type.String(), Type.Unknown()));
const errorBody = schemaCheck(ErrorBody);

/**
 * Calls the tool's route: the same client and request id; headers of the answer and what operators see belong to the outer
 * request. The arguments are those of the message: the SDK's copy of them leaves out a property `__proto__`.
 */
async function callRoute(tool: ServedTool, message: McpMessage, outer: Request, route: Routed) {
  const { method, path } = tool.route;
  const { given, returnsResponse } = argumentsOf(tool, message);
  if (typeof returnsResponse !== 'boolean')
    return refusalAnswer(invalidRequest([{ path: `/${RETURN_RESPONSE}`, message: 'Expected boolean' }]));
  const faults = method === 'GET' ? tool.input.faults(given) : [];
  if (faults.length > 0) return refusalAnswer(invalidRequest(faults));
  const headers = new Headers({ 'content-type': 'application/json' });
  const via = outer.headers.get('via');
  if (via !== null) headers.set('via', via);
  if (returnsResponse) headers.set('prefer', REPRESENTATION);
  setPayment(member(member(message.params, '_meta'), PAYMENT), headers);
  const id = pathSegment(String(member(given, 'id')));
  const body = method === 'POST' ? { body: JSON.stringify(given) } : {};
  const request = new Request(`http://localhost${path.replace(/:\w+/, id)}`, { method, headers, ...body });
  const context = contextOf(outer);
  setContext(request, { id: context.id, client: context.client, headers: new Map(), route: null });
  return route(request);
}

/** `given`: for the route. */
function argumentsOf(tool: ServedTool, message: McpMessage) {
  const given = member(message.params, 'arguments') ?? {};
  const asked = tool.returnsResponse ? member(given, RETURN_RESPONSE) : undefined;
  if (asked === undefined || !record.matches(given)) return { given, returnsResponse: false };
  const rest = Object.entries(given).filter(([name]) => name !== RETURN_RESPONSE);
  return { given: Object.fromEntries(rest), returnsResponse: asked };
}

/** A URL has no segment that is empty or dots only, however it is encoded: in their place, a text that is no identifier. */
function pathSegment(id: string): string {
  return /^\.{0,2}$/.test(id) ? '-' : encodeURIComponent(id);
}

function member(value: unknown, name: string): unknown {
  return record.matches(value) && Object.hasOwn(value, name) ? value[name] : undefined;
}

/**
 * Any value counts as a payment, readable or not, as a header does; null is none. A string is the header as it is, which
 * Cloudflare's `withX402Client` sends.
 */
function setPayment(payment: unknown, headers: Headers): void {
  if (payment === undefined || payment === null) return;
  const isHeader = typeof payment === 'string' && /^[\x21-\x7e]+$/.test(payment);
  const header = isHeader ? payment : toBase64(utf8(JSON.stringify(payment)));
  headers.set(isVersion1(header) ? 'x-payment' : 'payment-signature', header);
}

function isVersion1(header: string): boolean {
  try {
    return member(decoded(header), 'x402Version') === 1;
  } catch {
    return false;
  }
}

async function resultOf({ route: { paid } }: McpTool, response: Response): Promise<CallToolResult> {
  const { status, headers } = response;
  const text = await response.text();
  const body: unknown = JSON.parse(text);
  // A target that failed is a paid, receipted result: the payer must not take it for a refusal.
  if (status === 200 || status === 201 || (paid && status === 502)) return result(body, text, headers);
  const challenge = headers.get('payment-required');
  if (status === 402 && challenge !== null) {
    const required = decoded(challenge);
    const unpaid = result(required, JSON.stringify(required), headers);
    // Cloudflare's client reads the terms there.
    return { ...unpaid, isError: true, _meta: { ...unpaid._meta, [PAYMENT_ERROR]: required } };
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
  const bytes = fromBase64(header);
  const text = bytes === null ? null : fromUtf8(bytes);
  if (text === null) throw new Error('a payment header is no base64 of text');
  return JSON.parse(text);
}
