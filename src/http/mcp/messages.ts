// The messages of the MCP server: JSON-RPC 2.0 as the Model Context Protocol (2025-11-25) has it, one a request.
// Requests are judged by their envelope here; what is in `params` is the SDK's and the routes' to judge.
import { type TSchema, Type } from '@sinclair/typebox';
import type { Refused } from '#src/domain/refusal.ts';
import { Closed } from '#src/domain/schema-parts.ts';
import type { BodyRefused } from '#src/http/request/parse-request.ts';
import { type SchemaCheck, schemaCheck } from '#src/http/request/validation.ts';
import { STATUS } from '#src/http/response/errors.ts';
import { json } from '#src/http/response/json.ts';

/** As the SDK has them (a test compares), newest first: the SDK itself is loaded at the first message. */
export const MCP_VERSIONS = ['2025-11-25', '2025-06-18', '2025-03-26', '2024-11-05', '2024-10-07'] as const;

const Id = Type.Union([Type.String(), Type.Integer()]);
const Version = Type.Literal('2.0');
const Open = <P extends Record<string, TSchema>>(properties: P, description: string) =>
  Type.Object(properties, { description });

export const McpMessage = Closed({
  jsonrpc: Version,
  id: Type.Optional(Type.Union(Id.anyOf, { description: 'Absent: a notification, answered 202.' })),
  method: Type.String({ description: 'Such as initialize, tools/list, tools/call.' }),
  params: Type.Optional(
    Open({}, 'Of tools/call: `name`, `arguments`, and for paid tools `_meta["x402/payment"]`.'),
  ),
});
export type McpMessage = typeof McpMessage.static;

const envelope = schemaCheck(McpMessage);

/** Responses are refused with the rest: this server sends no requests to its clients. */
export const mcpMessage: SchemaCheck<typeof McpMessage> = {
  ...envelope,
  faults: (value) =>
    Array.isArray(value)
      ? [{ path: '', message: 'A batch: send one message a request' }]
      : envelope.faults(value),
};

const Results = Type.Union([
  Closed(
    {
      content: Type.Array(Closed({ type: Type.Literal('text'), text: Type.String() })),
      structuredContent: Open({}, 'Fits the outputSchema of the tool.'),
      isError: Type.Boolean({ description: 'Refused, failed, or not paid for.' }),
      _meta: Type.Optional(
        Closed({ 'x402/payment-response': Open({}, 'The settlement, as in PAYMENT-RESPONSE.') }),
      ),
    },
    'Of tools/call.',
  ),
  Closed(
    {
      tools: Type.Array(
        Closed({
          name: Type.String(),
          title: Type.String(),
          description: Type.String(),
          inputSchema: Open({ type: Type.Literal('object') }, 'JSON Schema.'),
          outputSchema: Open({ type: Type.Literal('object') }, 'JSON Schema.'),
          annotations: Open({}, 'Hints.'),
        }),
      ),
    },
    'Of tools/list.',
  ),
  Closed(
    {
      protocolVersion: Type.String(),
      capabilities: Open({}, 'Tools alone.'),
      serverInfo: Closed({ name: Type.String(), version: Type.String() }),
      instructions: Type.String(),
    },
    'Of initialize.',
  ),
  Closed({}, 'Of ping.'),
]);

const error = Closed({
  code: Type.Integer({ description: 'JSON-RPC 2.0 §5.1.' }),
  message: Type.String(),
  data: Type.Optional(
    Type.Unknown({ description: 'Of a refusal: `code` as in other answers, and `details`.' }),
  ),
});

export const McpAnswer = Type.Union([
  Closed({ jsonrpc: Version, id: Id, result: Results }),
  Closed({ jsonrpc: Version, id: Id, error }),
]);

export const McpRefusal = Closed({ jsonrpc: Version, id: Type.Null(), error });

/** JSON-RPC 2.0 §5.1; the last is the first of those that a server may use as it likes. */
const [PARSE_ERROR, INVALID_REQUEST, INVALID_PARAMS, SERVER_ERROR] = [
  -32700, -32600, -32602, -32000,
] as const;

const callParams = schemaCheck(
  Type.Object({ name: Type.String(), arguments: Type.Optional(Type.Record(Type.String(), Type.Unknown())) }),
);

/** null: it is not one. The SDK would call it a failure of the server. */
export function malformedCall({ id, method, params = {} }: McpMessage): Response | null {
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
export function envelopeRefusal(refusal: EnvelopeRefused): Response {
  const { refused: code, message, details, retryAfterSeconds } = refusal;
  const data = {
    code,
    ...(details === undefined ? {} : { details }),
    ...(retryAfterSeconds === undefined ? {} : { retryAfterSeconds }),
  };
  const error = { code: RPC_CODES[code] ?? SERVER_ERROR, message, data };
  const headers = retryAfterSeconds === undefined ? {} : { 'retry-after': String(retryAfterSeconds) };
  return json(STATUS[code], { jsonrpc: '2.0', id: null, error }, headers);
}
