// The envelope of the MCP server's messages: what is read, what is refused before any tool, and how that is said.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { SUPPORTED_PROTOCOL_VERSIONS } from '@modelcontextprotocol/sdk/types.js';
import { LIMITS } from '#src/domain/limits.ts';
import { MCP_VERSIONS } from '#src/http/mcp/endpoint.ts';
import { manualClock } from '#test/support/fakes.ts';
import { clientOf, errorOf } from '#test/support/http-client.ts';
import { countingQuota, fakeWorld } from '#test/support/http-deps.ts';
import { callMessage, MCP_HEADERS, rpcErrorOf, sendMessage } from '#test/support/mcp-client.ts';

const METHOD_NOT_FOUND = -32601;
const INVALID_PARAMS = -32602;
const SERVER_ERROR = -32000;

const ARGS = { url: 'https://a.example/hook' };
const PING = { jsonrpc: '2.0', id: 1, method: 'ping' };

/** A world in which nothing may be executed. */
function untouched() {
  const world = fakeWorld();
  const http = clientOf(world);
  return { http, executed: () => world.executed.length };
}

test('a request is answered by its id, a notification with 202 and nothing', async () => {
  const { http } = untouched();
  for (const id of [0, 1, 'a']) {
    const response = await sendMessage(http, { ...PING, id });
    assert.deepEqual([response.status, await response.json()], [200, { jsonrpc: '2.0', id, result: {} }]);
  }
  const { id: _, ...notification } = { ...PING, method: 'notifications/initialized' };
  assert.equal((await sendMessage(http, notification)).status, 202);
});

test('the manifest names the protocol versions of the SDK', () => {
  assert.deepEqual([...MCP_VERSIONS], SUPPORTED_PROTOCOL_VERSIONS);
});

test('initialize agrees on a version, with no session; an unknown version in the header is refused', async () => {
  const { http } = untouched();
  for (const version of ['2025-11-25', '2025-06-18', '2025-03-26', '2024-11-05']) {
    const params = { protocolVersion: version, capabilities: {}, clientInfo: { name: 'c', version: '1' } };
    const response = await sendMessage(http, { ...PING, method: 'initialize', params });
    const { result } = (await response.json()) as { result: { protocolVersion: string } };
    assert.equal(result.protocolVersion, version);
    assert.equal(response.headers.get('mcp-session-id'), null);
    assert.equal((await sendMessage(http, PING, { 'mcp-protocol-version': version })).status, 200);
  }
  const { status, code, id } = await rpcErrorOf(
    await sendMessage(http, PING, { 'mcp-protocol-version': '1999-01-01' }),
  );
  assert.deepEqual([status, code, id], [400, SERVER_ERROR, null]);
});

test('what is no strict JSON is refused before anything is done, with the code of the HTTP routes', async () => {
  const { http, executed } = untouched();
  const call = JSON.stringify(callMessage('execute_webhook', ARGS));
  const withArgument = (text: string) => call.replace('"arguments":{', () => `"arguments":{${text},`);
  const cases = [
    ['', 'invalid_json', undefined],
    ['{', 'invalid_json', undefined],
    [`${call} ${call}`, 'invalid_json', undefined],
    [withArgument('"body":1,"body":2'), 'invalid_request', '/params/arguments/body'],
    [withArgument('"body":9007199254740993'), 'invalid_request', '/params/arguments/body'],
    [withArgument('"body":"\\ud800"'), 'invalid_request', '/params/arguments/body'],
    [call.replace('"id":7', '"id":7,"id":8'), 'invalid_request', '/id'],
    [withArgument(`"body":${'['.repeat(64)}${']'.repeat(64)}`), 'invalid_request', ''],
  ] as const;
  for (const [text, expected, path] of cases) {
    const { status, code, details } = await errorOf(await sendMessage(http, text));
    assert.deepEqual([status, code], [400, expected], text.slice(0, 200));
    assert.equal((details as { path: string }[] | undefined)?.[0]?.path, path);
  }
  assert.equal(executed(), 0);
});

test('a batch, an answer, and what is no message are refused, and nothing of them is done', async () => {
  const { http, executed } = untouched();
  const call = callMessage('execute_webhook', ARGS);
  for (const message of [
    [call],
    [call, call],
    [],
    'text',
    null,
    {},
    { ...call, jsonrpc: '1.0' },
    { ...call, id: null },
    { ...call, id: 1.5 },
    { ...call, method: 5 },
    { ...call, params: [] },
    { ...call, surprise: 1 },
    { jsonrpc: '2.0', id: 1, result: {} },
  ]) {
    const { status, code } = await errorOf(await sendMessage(http, JSON.stringify(message)));
    assert.deepEqual([status, code], [400, 'invalid_request'], JSON.stringify(message));
  }
  assert.equal(executed(), 0);
});

test('an unknown method, an unknown tool, a task, and parameters of no form are errors of the protocol', async () => {
  const { http, executed } = untouched();
  const call = callMessage('execute_webhook', ARGS);
  const cases = [
    [{ ...PING, method: 'resources/list' }, METHOD_NOT_FOUND],
    [callMessage('drop_tables', ARGS), INVALID_PARAMS],
    [callMessage('__proto__', ARGS), INVALID_PARAMS],
    [callMessage('execute_webhook', 'text'), INVALID_PARAMS],
    [callMessage('execute_webhook', [ARGS]), INVALID_PARAMS],
    [{ ...call, params: { arguments: ARGS } }, INVALID_PARAMS],
    // The SDK's code for what does not fit its schema.
    [{ ...call, params: { ...call.params, task: {} } }, -32603],
  ] as const;
  for (const [message, code] of cases) {
    const error = await rpcErrorOf(await sendMessage(http, message));
    assert.deepEqual([error.status, error.id, error.code], [200, message.id, code], JSON.stringify(message));
  }
  assert.equal(executed(), 0);
});

test('media types: the body is application/json in UTF-8, the answer may be JSON or a stream', async () => {
  const { http } = untouched();
  for (const type of ['text/plain', 'application/json; charset=latin1', 'application/jsonp', '']) {
    const { status, code } = await errorOf(await sendMessage(http, PING, { 'content-type': type }));
    assert.deepEqual([status, code], [415, 'unsupported_media_type'], type);
  }
  for (const accept of ['application/json', 'text/event-stream', '*/*', 'text/html']) {
    const { status, code } = await rpcErrorOf(await sendMessage(http, PING, { accept }));
    assert.deepEqual([status, code], [406, SERVER_ERROR], accept);
  }
});

test('a message over its size is refused, and the connection is closed after it', async () => {
  const { http } = untouched();
  const text = JSON.stringify({ ...PING, params: { pad: '' } });
  const max = LIMITS.mcpMessageBytes.max;
  const padded = (size: number) => text.replace('""', () => `"${'x'.repeat(size - text.length)}"`);
  assert.equal((await sendMessage(http, padded(max))).status, 200);
  const response = await sendMessage(http, padded(max + 1));
  assert.equal(response.headers.get('connection'), 'close');
  const { status, code, details } = await errorOf(response);
  assert.deepEqual([status, code, details], [413, 'body_too_large', { maxBytes: max }]);
});

test('a message that does not arrive in time is refused', async () => {
  const clock = manualClock();
  const http = clientOf(fakeWorld({ clock }));
  const body = new ReadableStream({ start: (stream) => stream.enqueue(new TextEncoder().encode('{"json')) });
  const init = { method: 'POST', body, headers: MCP_HEADERS, duplex: 'half' } as RequestInit;
  const answering = http.call('/mcp', init);
  while (!clock.advanceToNext()) await new Promise((resolve) => setImmediate(resolve));
  const { status, code } = await errorOf(await answering);
  assert.deepEqual([status, code], [408, 'body_timeout']);
});

test('messages of one client are limited before a byte of them is read: rate_limited, and when to come again', async () => {
  const counting = countingQuota(3);
  const rules: [string, number, number][] = [];
  const take: typeof counting.take = (rule, key) => {
    rules.push([rule.name, rule.maxRequests, rule.windowMs]);
    return counting.take(rule, key);
  };
  const world = fakeWorld({ quota: { ...counting, take }, settings: { rateLimitPerMinute: 7 } });
  const http = clientOf(world);
  const first = await sendMessage(http, PING);
  assert.deepEqual(limitHeaders(first), {
    limit: '3',
    remaining: '2',
    reset: '31',
    policy: '3;w=60',
    retry: null,
  });
  // Whatever it brings, a message counts; one client is not another.
  assert.equal((await sendMessage(http, '{')).status, 400);
  assert.equal((await sendMessage(http, PING, { accept: 'text/html' })).status, 406);
  let read = 0;
  const body = new ReadableStream({ pull: () => void read++ }, { highWaterMark: 0 });
  const init = { method: 'POST', body, headers: MCP_HEADERS, duplex: 'half' } as RequestInit;
  const response = await http.call('/mcp', init);
  assert.deepEqual(limitHeaders(response), {
    limit: '3',
    remaining: '0',
    reset: '31',
    policy: '3;w=60',
    retry: '31',
  });
  const { status, code } = await errorOf(response);
  assert.deepEqual([status, code], [429, 'rate_limited']);
  assert.equal(read, 0);
  const other = { method: 'POST', body: JSON.stringify(PING), headers: MCP_HEADERS };
  assert.equal((await http.call('/mcp', other, '203.0.113.9')).status, 200);
  assert.deepEqual([...new Set(rules.map(String))], ['client-mcp,70,60000']);
});

function limitHeaders({ headers }: Response) {
  const [limit, remaining, reset, policy] = ['limit', 'remaining', 'reset', 'policy'].map((name) =>
    headers.get(`ratelimit-${name}`),
  );
  return { limit, remaining, reset, policy, retry: headers.get('retry-after') };
}

test('browsers of any origin may send what an MCP client sends', async () => {
  const { http } = untouched();
  const preflight = await http.call('/mcp', {
    method: 'OPTIONS',
    headers: { origin: 'https://elsewhere.example' },
  });
  const allowed = preflight.headers.get('access-control-allow-headers')?.split(', ') ?? [];
  for (const name of ['content-type', 'accept', 'mcp-protocol-version'])
    assert.ok(allowed.includes(name), name);
  const answer = await sendMessage(http, PING, { origin: 'https://elsewhere.example' });
  assert.equal(answer.headers.get('access-control-allow-origin'), '*');
  assert.equal(answer.headers.get('cache-control'), 'no-store');
});
