// The envelope of the MCP server's messages: what is read, what is refused before any tool, and how that is said.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { SUPPORTED_PROTOCOL_VERSIONS } from '@modelcontextprotocol/sdk/types.js';
import { LIMITS } from '#src/domain/limits.ts';
import { MCP_VERSIONS } from '#src/http/mcp/endpoint.ts';
import { clientOf, errorOf } from '#test/support/process/http-client.ts';
import {
  callMessage,
  connectInProcess,
  MCP_HEADERS,
  rpcErrorOf,
  STATELESS_HEADERS,
  STATELESS_VERSION,
  sendMessage,
  stateless,
} from '#test/support/process/mcp-client.ts';
import { manualClock } from '#test/support/world/fakes.ts';
import { countingQuota, fakeWorld } from '#test/support/world/http-deps.ts';

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

test('the manifest names the protocol versions of the SDK: those with a handshake, and the stateless one', async () => {
  const { http } = untouched();
  const discovered = await sendMessage(
    http,
    stateless('server/discover'),
    STATELESS_HEADERS('server/discover'),
  );
  const { result } = (await discovered.json()) as { result: { supportedVersions: string[] } };
  assert.deepEqual([...MCP_VERSIONS], [...result.supportedVersions, ...SUPPORTED_PROTOCOL_VERSIONS]);
});

test('clients of both generations agree on a version, whichever they ask for first', async () => {
  for (const [generation, expected] of [
    ['1.x', '2025-11-25'],
    ['2.x', '2025-11-25'],
    ['2.x auto', STATELESS_VERSION],
    ['2.x stateless', STATELESS_VERSION],
  ] as const) {
    const { sdk, version, call } = await connectInProcess(untouched().http, undefined, generation);
    assert.equal(version, expected, generation);
    assert.equal((await call('check_policy', ARGS)).isError, false, generation);
    await sdk.close();
  }
});

test('a stateless message needs no handshake; its headers must agree with it; without subscriptions', async () => {
  const { http, executed } = untouched();
  const ok = await sendMessage(http, stateless('tools/list'), STATELESS_HEADERS('tools/list'));
  assert.deepEqual([ok.status, ok.headers.get('content-type')], [200, 'application/json']);
  const { id: _, ...notification } = stateless('notifications/cancelled', { requestId: 1 });
  const headers = STATELESS_HEADERS('notifications/cancelled');
  assert.equal((await sendMessage(http, notification, headers)).status, 202);
  const call = stateless('tools/call', { name: 'execute_webhook', arguments: ARGS });
  const cases = [
    [call, {}, 400],
    [call, STATELESS_HEADERS('tools/list'), 400],
    [call, STATELESS_HEADERS('tools/call', 'get_job'), 400],
    [{ ...call, params: callMessage('execute_webhook', ARGS).params }, STATELESS_HEADERS('tools/call'), 400],
    [call, { ...STATELESS_HEADERS('tools/call'), 'mcp-protocol-version': '2030-01-01' }, 400],
    [stateless('initialize'), STATELESS_HEADERS('initialize'), 404],
    [stateless('resources/list'), STATELESS_HEADERS('resources/list'), 404],
    [stateless('subscriptions/listen'), STATELESS_HEADERS('subscriptions/listen'), 404],
  ] as const;
  for (const [message, headers, status] of cases) {
    const error = await rpcErrorOf(await sendMessage(http, message, headers));
    assert.deepEqual([error.status, error.id], [status, message.id], JSON.stringify([message, headers]));
    assert.ok(error.code < 0);
  }
  assert.equal(executed(), 0);
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
    // As of the body of the route.
    [withArgument('"body":1,"body":2'), 'invalid_request', '/body'],
    [withArgument('"body":9007199254740993'), 'invalid_request', '/body'],
    [withArgument('"body":[{"n":-0}]'), 'invalid_request', '/body/0/n'],
    [withArgument('"body":"\\ud800"'), 'invalid_request', '/body'],
    [call.replace('"name":', '"name":"a","name":'), 'invalid_request', '/params/name'],
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

test('an unknown method, an unknown tool, and parameters of no form are errors of the protocol', async () => {
  const { http, executed } = untouched();
  const call = callMessage('execute_webhook', ARGS);
  const cases = [
    [{ ...PING, method: 'resources/list' }, METHOD_NOT_FOUND],
    [callMessage('drop_tables', ARGS), INVALID_PARAMS],
    [callMessage('__proto__', ARGS), INVALID_PARAMS],
    [callMessage('execute_webhook', 'text'), INVALID_PARAMS],
    [callMessage('execute_webhook', [ARGS]), INVALID_PARAMS],
    [{ ...call, params: { arguments: ARGS } }, INVALID_PARAMS],
  ] as const;
  for (const [message, code] of cases) {
    const error = await rpcErrorOf(await sendMessage(http, message));
    assert.deepEqual([error.status, error.id, error.code], [200, message.id, code], JSON.stringify(message));
  }
  assert.equal(executed(), 0);
});

test('a task of revision 2025-11-25 is ignored: the server declares none', async () => {
  const call = callMessage('check_policy', ARGS);
  const response = await sendMessage(untouched().http, { ...call, params: { ...call.params, task: {} } });
  const { result } = (await response.json()) as { result: { isError: boolean } };
  assert.equal(result.isError, false);
});

test('media types: the body is application/json in UTF-8, and so is the answer where that is acceptable', async () => {
  const { http } = untouched();
  for (const type of ['text/plain', 'application/json; charset=latin1', 'application/jsonp', '']) {
    const { status, code } = await errorOf(await sendMessage(http, PING, { 'content-type': type }));
    assert.deepEqual([status, code], [415, 'unsupported_media_type'], type);
  }
  const { accept: _, ...plain } = MCP_HEADERS;
  for (const accept of [
    'application/json',
    '*/*',
    null,
    '',
    'text/event-stream, Application/JSON;q=0.1',
    'text/html, application/*;q=0.5',
  ]) {
    const headers = accept === null ? plain : { ...plain, accept };
    const init = { method: 'POST', body: JSON.stringify(PING), headers };
    const response = await http.call('/mcp', init);
    const given = [response.status, response.headers.get('content-type')];
    assert.deepEqual(given, [200, 'application/json'], String(accept));
  }
  for (const accept of [
    'text/event-stream',
    'text/html',
    'application/json;q=0',
    'application/json; q=0.0, */*',
    '*/*;q=0',
  ]) {
    const { status, code, id } = await rpcErrorOf(await sendMessage(http, PING, { accept }));
    assert.deepEqual([status, code, id], [406, SERVER_ERROR, PING.id], accept);
  }
});

test('the address may end with a slash', async () => {
  const { http } = untouched();
  const init = { method: 'POST', body: JSON.stringify(PING), headers: MCP_HEADERS };
  const response = await http.call('/mcp/', init);
  assert.deepEqual([response.status, await response.json()], [200, { jsonrpc: '2.0', id: 1, result: {} }]);
  for (const path of ['/mcp', '/mcp/']) assert.equal((await http.call(path)).status, 405);
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
  for (const name of [
    ...['content-type', 'accept', 'authorization', 'traceparent', 'tracestate', 'baggage'],
    ...['mcp-protocol-version', 'mcp-method', 'mcp-name', 'mcp-session-id', 'last-event-id'],
  ])
    assert.ok(allowed.includes(name), name);
  const answer = await sendMessage(http, PING, { origin: 'https://elsewhere.example' });
  assert.equal(answer.headers.get('access-control-allow-origin'), '*');
  assert.equal(answer.headers.get('cache-control'), 'no-store');
});
