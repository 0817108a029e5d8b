// A call of a tool is a call of its route, by the same caller: limits, refusals, payment and replay are the route's.
// Payment: x402, transport MCP (specs/transports-v2/mcp.md), tool-result binding.
import type { CallToolResult } from '@modelcontextprotocol/sdk/types.js';
import { Type } from '@sinclair/typebox';
import { MCP_TOOLS, type ToolFacts, type ToolName } from '#src/discovery/mcp-tools.ts';
import { fromBase64url, fromUtf8, toBase64url, utf8 } from '#src/domain/encoding.ts';
import type { Routed } from '#src/http/request/pipeline.ts';
import { contextOf, setContext } from '#src/http/request/request-context.ts';
import { invalidRequest, schemaCheck } from '#src/http/request/validation.ts';
import { ErrorBody, faultAnswer, refusalAnswer } from '#src/http/response/errors.ts';
import type { McpMessage } from './messages.ts';
import { TOOL_FORMS } from './tools.ts';

const PAYMENT = 'x402/payment';
const PAYMENT_RESPONSE = 'x402/payment-response';

type Known = ToolFacts & { readonly name: ToolName };

export const findTool = (name: string): Known | undefined => MCP_TOOLS.find((tool) => tool.name === name);

const record = schemaCheck(Type.Record(Type.String(), Type.Unknown()));
const errorBody = schemaCheck(ErrorBody);
const checks = new Map(MCP_TOOLS.map(({ name }) => [name, schemaCheck(TOOL_FORMS[name].input)]));

/** `outer`: the request that brought it. Never throws: `tell` hears of what should not happen. */
export async function callTool(
  tool: Known,
  message: McpMessage,
  outer: Request,
  route: Routed,
  tell: (cause: unknown) => void,
): Promise<CallToolResult> {
  try {
    return await resultOf(tool, await answered(tool, message, outer, route));
  } catch (cause) {
    tell(cause);
    return resultOf(tool, faultAnswer(cause));
  }
}

/** The parameters are read as they came: the SDK's copy of them leaves out a property `__proto__`. */
function answered(tool: Known, message: McpMessage, outer: Request, route: Routed): Promise<Response> {
  const given = member(message.params, 'arguments') ?? {};
  const headers = new Headers();
  const via = outer.headers.get('via');
  if (via !== null) headers.set('via', via);
  if (tool.route.method === 'POST') {
    headers.set('content-type', 'application/json');
    present(member(member(message.params, '_meta'), PAYMENT), headers);
    const init = { method: 'POST', body: JSON.stringify(given), headers };
    return inner(new Request(urlOf(tool.route.path), init), outer, route);
  }
  const faults = checks.get(tool.name)?.faults(given) ?? [];
  if (faults.length > 0) return Promise.resolve(refusalAnswer(invalidRequest(faults)));
  const path = tool.route.path.replace(/:([A-Za-z]+)/g, (_, name) =>
    encodeURIComponent(String(member(given, name))),
  );
  return inner(new Request(urlOf(path), { headers }), outer, route);
}

/** The same caller under the same id; the headers and what operators see are the outer request's. */
function inner(request: Request, outer: Request, route: Routed): Promise<Response> {
  const { id, client } = contextOf(outer);
  setContext(request, { id, client, headers: new Map(), route: null });
  return route(request);
}

const urlOf = (path: string) => `http://localhost${path}`;

function member(of: unknown, name: string): unknown {
  return record.matches(of) && Object.hasOwn(of, name) ? of[name] : undefined;
}

/** Whatever is there counts as a payment, readable or not, as a header does; null is none. */
function present(payment: unknown, headers: Headers): void {
  if (payment === undefined || payment === null) return;
  const header = member(payment, 'x402Version') === 1 ? 'x-payment' : 'payment-signature';
  headers.set(header, toBase64url(utf8(JSON.stringify(payment))));
}

async function resultOf({ paid }: Known, response: Response): Promise<CallToolResult> {
  const { status, headers } = response;
  const text = await response.text();
  const body: unknown = JSON.parse(text);
  // A target that failed is a paid, receipted result: whoever pays must not take it for a refusal.
  if (status === 200 || (paid && status === 502)) return result(body, text, headers);
  const challenge = headers.get('payment-required');
  if (status === 402 && challenge !== null) {
    const asked = decoded(challenge);
    return { ...result(asked, JSON.stringify(asked), headers), isError: true };
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

/** `code`, then words that a model which sees the text alone can act on. */
function refusal(body: unknown, retryAfter: string | null): CallToolResult {
  if (!errorBody.matches(body)) throw new Error('a refusal has no error body');
  const { error } = body;
  const retryAfterSeconds = retryAfter === null ? null : Number(retryAfter);
  const words = [
    `${error.code}: ${error.message}`,
    ...(error.details === undefined ? [] : [`Details: ${JSON.stringify(error.details)}`]),
    ...(retryAfterSeconds === null ? [] : [`Try again in ${retryAfterSeconds} seconds.`]),
    ...(error.code === 'payment_unconfirmed' ? [SAME_PAYMENT] : []),
  ];
  return {
    content: [{ type: 'text', text: words.join('\n') }],
    structuredContent: { error, ...(retryAfterSeconds === null ? {} : { retryAfterSeconds }) },
    isError: true,
  };
}

const SAME_PAYMENT =
  'Repeat this call with the same _meta["x402/payment"]. A new payment could be charged as well.';

/** Base64 of JSON, as x402 has it in headers. */
function decoded(header: string): unknown {
  const bytes = fromBase64url(header.replaceAll('+', '-').replaceAll('/', '_').replace(/=+$/, ''));
  const text = bytes === null ? null : fromUtf8(bytes);
  if (text === null) throw new Error('a payment header of ours is no base64 of text');
  return JSON.parse(text);
}
