// Clients of the MCP server: the SDKs' own, of both generations, and bare messages for what they would not send.
import assert from 'node:assert/strict';
import {
  Client as Client2,
  type ClientOptions,
  StreamableHTTPClientTransport as Transport2,
} from '@modelcontextprotocol/client';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import {
  StreamableHTTPClientTransport,
  type StreamableHTTPClientTransportOptions,
} from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { AjvJsonSchemaValidator } from '@modelcontextprotocol/sdk/validation/ajv';
import type { PaymentPayload, PaymentRequired, SettleResponse } from '@x402/core/types';
import type { Client as HttpClient } from './http-client.ts';

export type ToolResult = {
  readonly text: string;
  readonly isError: boolean;
  readonly structured: Record<string, unknown>;
  readonly settlement: SettleResponse | null;
  /** Of a call without an accepted payment: what to pay. */
  readonly error: PaymentRequired | null;
};

/**
 * `1.x`: the last revision with `initialize`. `2.x`: the generation's default, the same handshake. `2.x stateless`: pinned to
 * revision 2026-07-28. `2.x auto`: asks for that one, and falls back to the handshake.
 */
export type McpGeneration = '1.x' | '2.x' | '2.x stateless' | '2.x auto';

/** One for each protocol, of the SDK that is made for it. */
export const GENERATIONS = ['1.x', '2.x stateless'] as const satisfies readonly McpGeneration[];

export const STATELESS_VERSION = '2026-07-28';

const MODES: Record<Exclude<McpGeneration, '1.x'>, ClientOptions> = {
  '2.x': {},
  '2.x stateless': { versionNegotiation: { mode: { pin: STATELESS_VERSION } } },
  '2.x auto': { versionNegotiation: { mode: 'auto' } },
};

export type McpClient = {
  readonly sdk: Pick<
    Client | Client2,
    'close' | 'getInstructions' | 'getServerCapabilities' | 'getServerVersion' | 'listTools'
  >;
  /** The revision of the protocol that was agreed on. */
  readonly version: string | undefined;
  /** Validated by the SDK against the tool's output schema; content and structured content are there. */
  call(
    name: string,
    args?: Record<string, unknown>,
    payment?: PaymentPayload | object | string,
  ): Promise<ToolResult>;
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
  generation: McpGeneration = '1.x',
): Promise<McpClient> {
  const { sdk, version } = await connected(new URL(url), fetch === undefined ? {} : { fetch }, generation);
  await sdk.listTools();
  return {
    sdk,
    version,
    async call(name, args = {}, payment) {
      const _meta = payment === undefined ? undefined : { 'x402/payment': payment };
      const params = { name, arguments: args, ...(_meta === undefined ? {} : { _meta }) };
      return toolResult(await sdk.callTool(params));
    },
  };
}

async function connected(url: URL, options: StreamableHTTPClientTransportOptions, generation: McpGeneration) {
  const info = { name: 'test', version: '1' };
  if (generation === '1.x') {
    const sdk = new Client(info, { jsonSchemaValidator });
    const transport = new StreamableHTTPClientTransport(url, options);
    await sdk.connect(transport as Parameters<Client['connect']>[0]);
    return { sdk, version: transport.protocolVersion };
  }
  const sdk = new Client2(info, { ...MODES[generation], jsonSchemaValidator });
  await sdk.connect(new Transport2(url, options));
  return { sdk, version: sdk.getNegotiatedProtocolVersion() };
}

/** In process: every answer is held against the interface description as well. */
export const connectInProcess = (
  http: HttpClient,
  clientAddress?: string,
  generation?: McpGeneration,
): Promise<McpClient> =>
  connectMcp(
    'http://localhost/mcp',
    (url, init) => http.call(new URL(url).pathname, init, clientAddress),
    generation,
  );

function toolResult(result: Awaited<ReturnType<(Client | Client2)['callTool']>>): ToolResult {
  const { content, structuredContent, isError, _meta } = result;
  assert.ok(Array.isArray(content));
  assert.deepEqual(
    content.map(({ type }) => type),
    ['text'],
  );
  assert.equal(typeof isError, 'boolean');
  const settlement = _meta?.['x402/payment-response'];
  const isUnpaid = (structuredContent as { accepts?: unknown }).accepts !== undefined;
  const error = _meta?.['x402/error'];
  assert.deepEqual(error, isUnpaid ? structuredContent : undefined);
  return {
    text: content[0].text,
    isError: isError === true,
    structured: structuredContent as Record<string, unknown>,
    settlement: (settlement ?? null) as SettleResponse | null,
    error: (error ?? null) as PaymentRequired | null,
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

/** A request of the revision without a handshake: each carries what `initialize` did. */
export const stateless = (method: string, params: Record<string, unknown> = {}) => ({
  jsonrpc: '2.0',
  id: 7,
  method,
  params: {
    ...params,
    _meta: {
      'io.modelcontextprotocol/protocolVersion': STATELESS_VERSION,
      'io.modelcontextprotocol/clientInfo': { name: 'test', version: '1' },
      'io.modelcontextprotocol/clientCapabilities': {},
    },
  },
});

export const STATELESS_HEADERS = (method: string, name?: string): Record<string, string> => ({
  'mcp-protocol-version': STATELESS_VERSION,
  'mcp-method': method,
  ...(name === undefined ? {} : { 'mcp-name': name }),
});

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
