// Clients of the MCP server: the SDK's own, and bare messages for what it would not send.
import assert from 'node:assert/strict';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import {
  StreamableHTTPClientTransport,
  type StreamableHTTPClientTransportOptions,
} from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { AjvJsonSchemaValidator } from '@modelcontextprotocol/sdk/validation/ajv';
import type { PaymentPayload, SettleResponse } from '@x402/core/types';
import type { Client as HttpClient } from './http-client.ts';

export type ToolResult = {
  readonly text: string;
  readonly isError: boolean;
  readonly structured: Record<string, unknown>;
  readonly settlement: SettleResponse | null;
};

export type McpClient = {
  readonly sdk: Client;
  /** Validated by the SDK against the tool's output schema; content and structured content are there. */
  call(name: string, args?: Record<string, unknown>, payment?: PaymentPayload | object): Promise<ToolResult>;
};

const ajv = new AjvJsonSchemaValidator();
/** By the schema's text: clients of the same tools share the compiled ones. */
const compiled = new Map<string, ReturnType<typeof ajv.getValidator>>();
const jsonSchemaValidator: Pick<typeof ajv, 'getValidator'> = {
  getValidator<T>(schema: Parameters<typeof ajv.getValidator<T>>[0]) {
    const text = JSON.stringify(schema);
    const validator = compiled.get(text) ?? ajv.getValidator(schema);
    compiled.set(text, validator);
    return validator as ReturnType<typeof ajv.getValidator<T>>;
  },
};

/** Connected, and it knows the tools: from then on the SDK holds every result against its tool's output schema. */
export async function connectMcp(
  url: string,
  fetch?: StreamableHTTPClientTransportOptions['fetch'],
): Promise<McpClient> {
  const sdk = new Client({ name: 'test', version: '1' }, { jsonSchemaValidator });
  const transport = new StreamableHTTPClientTransport(new URL(url), fetch === undefined ? {} : { fetch });
  await sdk.connect(transport as Parameters<Client['connect']>[0]);
  await sdk.listTools();
  return {
    sdk,
    async call(name, args = {}, payment) {
      const _meta = payment === undefined ? undefined : { 'x402/payment': payment };
      const params = { name, arguments: args, ...(_meta === undefined ? {} : { _meta }) };
      return toolResult(await sdk.callTool(params));
    },
  };
}

/** In process: every answer is held against the interface description as well. */
export const connectInProcess = (http: HttpClient, clientAddress?: string): Promise<McpClient> =>
  connectMcp('http://localhost/mcp', (url, init) => http.call(new URL(url).pathname, init, clientAddress));

function toolResult(result: Awaited<ReturnType<Client['callTool']>>): ToolResult {
  const { content, structuredContent, isError, _meta } = result;
  assert.ok(Array.isArray(content));
  assert.deepEqual(
    content.map(({ type }) => type),
    ['text'],
  );
  assert.equal(typeof isError, 'boolean');
  const settlement = _meta?.['x402/payment-response'];
  return {
    text: content[0].text,
    isError: isError === true,
    structured: structuredContent as Record<string, unknown>,
    settlement: (settlement ?? null) as SettleResponse | null,
  };
}

export const MCP_HEADERS = {
  'content-type': 'application/json',
  accept: 'application/json, text/event-stream',
} as const;

/** One message as it is written. */
export const sendMessage = (
  http: HttpClient,
  message: unknown,
  headers: Record<string, string> = {},
): Promise<Response> => http.post('/mcp', message, { ...MCP_HEADERS, ...headers });

export const callMessage = (name: string, args: unknown = {}, _meta?: unknown) => ({
  jsonrpc: '2.0',
  id: 7,
  method: 'tools/call',
  params: { name, arguments: args, ...(_meta === undefined ? {} : { _meta }) },
});

/** A JSON-RPC error: of a message that was not read, `id` is null. */
export async function rpcErrorOf(response: Response) {
  const { id, error } = (await response.json()) as {
    id: unknown;
    error: { code: number; message: string; data?: { code?: string; details?: unknown } };
  };
  return { status: response.status, id, ...error };
}
