// GET /metrics: for this machine alone unless the operator says otherwise; and what a request is counted as.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { instrumentRequests, processMeter } from '#src/http/request/instrumentation.ts';
import type { AnsweredRequest } from '#src/ports/telemetry.ts';
import { clientOf, errorOf } from '#test/support/process/http-client.ts';
import { fakeWorld, type HttpWorld, JOB } from '#test/support/world/http-deps.ts';

const operators = fakeWorld().operators;
const LOOPBACK = '127.0.0.1';

async function isShown(
  headers: Record<string, string>,
  peer: string,
  settings: Partial<HttpWorld['settings']> = {},
): Promise<boolean> {
  const client = clientOf(fakeWorld({ settings }));
  const [response, nothing] = await Promise.all([
    client.call('/metrics', { headers }, peer),
    client.call('/nothing', { headers }, peer),
  ]);
  if (response.status === 200) {
    assert.equal(response.headers.get('content-type'), 'text/plain; version=0.0.4; charset=utf-8');
    assert.equal(response.headers.get('cache-control'), 'no-store');
    assert.equal(await response.text(), 'up 1\n');
    return true;
  }
  // As for any path with nothing behind it, to the last byte but the id of the request.
  assert.deepEqual(headersOf(response), headersOf(nothing));
  const [error, expected] = [await errorOf(response), await errorOf(nothing)];
  assert.deepEqual(error, expected);
  assert.deepEqual([error.status, error.code], [404, 'route_not_found']);
  return false;
}

const headersOf = ({ headers }: Response) => [...headers].filter(([name]) => name !== 'x-request-id').sort();

test('metrics: shown to loopback, in every spelling of it', async () => {
  for (const peer of [
    LOOPBACK,
    '127.8.9.10',
    '::1',
    '::ffff:127.0.0.1',
    '::ffff:7f00:1',
    '0:0:0:0:0:0:0:1',
  ]) {
    assert.equal(await isShown({}, peer), true, peer);
  }
  for (const host of ['localhost', 'localhost:3402', '127.0.0.1:3402', '[::1]:3402', 'LOCALHOST']) {
    assert.equal(await isShown({ host }, LOOPBACK), true, host);
  }
});

test('metrics: 404 route_not_found to every other address', async () => {
  const others = [
    '198.51.100.7',
    '10.0.0.1',
    '0.0.0.0',
    '128.0.0.1',
    '::2',
    '::ffff:10.0.0.1',
    'fe80::1',
    'unknown',
    '',
  ];
  for (const peer of others) assert.equal(await isShown({}, peer), false, peer);
});

test('metrics: a call that a proxy on this machine passes on is none of this machine', async () => {
  const names = ['x-forwarded-for', 'forwarded', 'x-real-ip', 'via', 'x-forwarded-host', 'cf-connecting-ip'];
  for (const name of names) {
    for (const value of ['203.0.113.9', LOOPBACK, 'for=127.0.0.1', '', '1.1 proxy']) {
      assert.equal(await isShown({ [name]: value }, LOOPBACK), false, `${name}: ${value}`);
    }
  }
  // Also where that proxy is trusted, and says that its client is this machine.
  const trusting = { trustsProxy: () => true };
  assert.equal(await isShown({ 'x-forwarded-for': LOOPBACK }, '10.0.0.1', trusting), false);
  assert.equal(await isShown({ 'x-forwarded-for': LOOPBACK }, LOOPBACK, trusting), false);
  assert.equal(await isShown({}, LOOPBACK, trusting), true);
  for (const host of ['relay.example', 'relay.example:80', '127.0.0.1.example', '192.168.1.1', '[::2]']) {
    assert.equal(await isShown({ host }, LOOPBACK), false, host);
  }
});

test('metrics: nor is one of a page in a browser on this machine', async () => {
  for (const [name, value] of [
    ['origin', 'https://evil.example'],
    ['origin', 'null'],
    ['referer', 'https://evil.example/'],
    ['sec-fetch-site', 'cross-site'],
    ['sec-fetch-site', 'same-site'],
  ] as const) {
    assert.equal(await isShown({ [name]: value }, LOOPBACK), false, name);
  }
});

test('metrics: shown to a person in a browser on this machine, and to programs that send its headers', async () => {
  for (const headers of [
    { 'sec-fetch-site': 'none', 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'document' },
    { 'sec-fetch-site': 'same-origin', 'sec-fetch-mode': 'cors' },
    // Node's fetch.
    { 'sec-fetch-mode': 'cors' },
  ])
    assert.equal(await isShown(headers, LOOPBACK), true, JSON.stringify(headers));
});

test('metrics: METRICS_PUBLIC=true shows them to everybody', async () => {
  const open = { metricsPublic: true };
  assert.equal(await isShown({}, '198.51.100.7', open), true);
  assert.equal(
    await isShown({ 'x-forwarded-for': '203.0.113.9', host: 'relay.example' }, LOOPBACK, open),
    true,
  );
});

test('metrics: never rate limited, HEAD is GET, and the interface description leaves them out', async () => {
  const world = fakeWorld({
    quota: {
      take: () => assert.fail('counted'),
      look: () => assert.fail('counted'),
    },
  });
  const client = clientOf(world);
  for (let i = 0; i < 70; i++) assert.equal((await client.call('/metrics', {}, LOOPBACK)).status, 200);
  assert.equal((await client.call('/metrics', { method: 'HEAD' }, LOOPBACK)).status, 200);
  assert.equal((await client.call('/metrics', { method: 'HEAD' }, '10.0.0.1')).status, 404);
  const { paths } = await client.document();
  assert.ok(Object.keys(paths).length > 10 && !Object.keys(paths).some((path) => path.includes('metrics')));
});

/** What is reported of each request to metrics, traces and the log. */
function watched(changes: Partial<HttpWorld> = {}) {
  const answered: AnsweredRequest[] = [];
  const lines: unknown[] = [];
  const spans: unknown[][] = [];
  let begun = 0;
  const world = fakeWorld({
    ...changes,
    settings: {},
    reads: {},
    progress: {},
    operators: {
      ...operators,
      figures: {
        requestBegun() {
          begun += 1;
          return (request) => void answered.push(request);
        },
      },
      detail: { debug: (_, fields) => void lines.push(fields) },
      tracer: {
        async within(name, kind, work) {
          const span: unknown[] = [kind, name];
          const answer = await work({
            rename: (renamed) => void span.splice(1, 1, renamed),
            setAttributes: (facts) => void span.push(facts),
            fail: () => void span.push('failed'),
          });
          spans.push(span);
          return answer;
        },
        traceId: () => null,
        close: async () => undefined,
      },
    },
  });
  return { world, client: clientOf(world), answered, lines, spans, begun: () => begun };
}

test('requests are reported by the pattern of their route, and never by their path', async () => {
  const secret = 'canary-of-a-path';
  const { client, answered, lines, spans, begun } = watched({
    execute: () => Promise.reject(new Error(secret)),
  });
  const calls: readonly (readonly [path: string, init: RequestInit, route: string | null, status: number])[] =
    [
      [`/api/jobs/${JOB}?a=${secret}`, {}, '/api/jobs/:id', 200],
      [`/api/jobs/${secret}`, {}, '/api/jobs/:id', 404],
      [`/proof/${JOB}/badge.svg`, {}, '/proof/:jobOrReceiptId/badge.svg', 200],
      [`/${secret}`, {}, null, 404],
      [`/api/jobs/${secret}/${secret}`, {}, null, 404],
      [`/api/jobs/${secret}`, { method: 'DELETE' }, '/api/jobs/:id', 405],
      ['/health', { method: 'OPTIONS' }, '/health', 204],
      ['/health', { method: 'HEAD' }, '/health', 200],
      ['/metrics', { headers: { host: `a/${secret}` } }, null, 400],
      ['/metrics', {}, '/metrics', 404],
      [
        '/api/execute/webhook',
        {
          method: 'POST',
          headers: {
            'content-type': 'application/json',
            traceparent: `00-${'a1'.repeat(16)}-${'b2'.repeat(8)}-01`,
          },
          body: JSON.stringify({ url: `https://${secret}.example/` }),
        },
        '/api/execute/webhook',
        500,
      ],
    ];
  for (const [path, init] of calls) await client.call(path, init);
  // The client itself reads the description first, once.
  const own = answered.findIndex(({ route }) => route === '/openapi.json');
  const others = answered.toSpliced(own, 1);
  assert.deepEqual(
    others.map(({ route, method, status }) => [route, method, status]),
    calls.map(([, { method = 'GET' }, route, status]) => [route, method, status]),
  );
  assert.equal(begun(), answered.length);
  for (const { seconds } of others) assert.ok(seconds >= 0 && seconds < 60);
  assert.deepEqual(
    spans.toSpliced(own, 1),
    calls.map(([, { method = 'GET' }, route, status]) => [
      'server',
      route === null ? method : `${method} ${route}`,
      { 'http.request.method': method, 'http.route': route, 'http.response.status_code': status },
      ...(status === 500 ? ['failed'] : []),
    ]),
  );
  assert.equal(lines.length, answered.length);
  const everything = JSON.stringify([answered, lines, spans]);
  for (const word of [secret, 'a1a1', 'b2b2']) assert.ok(!everything.includes(word), word);
  assert.deepEqual(Object.keys(lines[0] as object).sort(), ['method', 'ms', 'requestId', 'route', 'status']);
});

test('a method that a caller invented has one name, whatever it is', async () => {
  const { world, answered, spans } = watched();
  const context = { id: 'id', client: '::1', headers: new Map<string, string>(), route: null };
  const instrumented = instrumentRequests(world, processMeter(world.clock));
  await instrumented('CANARY', context, async () => new Response(null, { status: 204 }));
  assert.deepEqual(
    answered.map(({ method, status }) => [method, status]),
    [['_OTHER', 204]],
  );
  assert.ok(spans.length === 1 && !JSON.stringify(spans).includes('CANARY'));
});
