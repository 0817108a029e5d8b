import assert from 'node:assert/strict';
import { test } from 'node:test';
import { clientOf, errorOf } from '#test/support/process/http-client.ts';
import { appOf, countingQuota, fakeWorld, JOB, job } from '#test/support/world/http-deps.ts';

const UUID = /^[0-9a-f-]{36}$/;

test('an unknown path is route_not_found, with any method', async () => {
  const client = clientOf(fakeWorld());
  for (const path of [
    '/api/',
    '/docs/',
    '/api/jobs',
    '/api/jobs/',
    `/api/jobs/${JOB}/more`,
    '/api/trust/',
    '//api/trust',
    '/API/trust',
    '/nowhere.json',
  ]) {
    for (const method of ['GET', 'POST', 'OPTIONS', 'DELETE']) {
      const { status, code } = await errorOf(await client.call(path, { method }));
      assert.deepEqual([status, code], [404, 'route_not_found'], `${method} ${path}`);
    }
  }
});

test('a method that a path does not serve is method_not_allowed and lists those it does', async () => {
  const client = clientOf(fakeWorld());
  const cases = [
    ['/api/execute/webhook', 'GET', 'POST, OPTIONS'],
    ['/api/execute/webhook', 'HEAD', 'POST, OPTIONS'],
    ['/api/execute/guided-webhook', 'GET', 'POST, OPTIONS'],
    ['/api/policy/check', 'PUT', 'POST, OPTIONS'],
    ['/api/decide/webhook', 'GET', 'POST, OPTIONS'],
    ['/mcp', 'GET', 'POST, OPTIONS'],
    ['/mcp', 'DELETE', 'POST, OPTIONS'],
    ['/api/canary/echo', 'PUT', 'GET, POST, HEAD, OPTIONS'],
    [`/api/jobs/${JOB}`, 'POST', 'GET, HEAD, OPTIONS'],
    ['/api/trust', 'DELETE', 'GET, HEAD, OPTIONS'],
    ['/openapi.json', 'PATCH', 'GET, HEAD, OPTIONS'],
  ] as const;
  for (const [path, method, allow] of cases) {
    const response = await client.call(path, { method });
    assert.equal(response.status, 405, `${method} ${path}`);
    assert.equal(response.headers.get('allow'), allow);
    if (method !== 'HEAD') assert.equal((await errorOf(response)).code, 'method_not_allowed');
  }
});

test('HEAD answers as GET does (its body is left away by the server)', async () => {
  const client = clientOf(fakeWorld());
  for (const path of [`/api/jobs/${JOB}`, '/api/trust', '/health', '/openapi.json', '/api/jobs/none']) {
    const get = await client.call(path);
    const head = await client.call(path, { method: 'HEAD' });
    assert.equal(head.status, get.status);
    assert.equal(head.headers.get('content-type'), get.headers.get('content-type'));
  }
});

test('browsers of any origin may call, without credentials, and read the headers they need', async () => {
  const client = clientOf(fakeWorld());
  const preflight = await client.call('/api/execute/webhook', {
    method: 'OPTIONS',
    headers: { origin: 'https://elsewhere.example', 'access-control-request-method': 'POST' },
  });
  assert.equal(preflight.status, 204);
  assert.equal(preflight.headers.get('access-control-allow-methods'), 'POST, OPTIONS');
  const allowed = preflight.headers.get('access-control-allow-headers')?.split(', ') ?? [];
  for (const name of [
    ...['content-type', 'payment-signature', 'x-payment', 'x-request-id', 'idempotency-key'],
    ...['traceparent', 'tracestate', 'baggage', 'if-none-match', 'cache-control'],
  ])
    assert.ok(allowed.includes(name), name);
  const answer = await client.call(`/api/jobs/${JOB}`);
  for (const { headers } of [preflight, answer]) {
    assert.equal(headers.get('access-control-allow-origin'), '*');
    assert.equal(headers.get('access-control-allow-credentials'), null);
    const exposed = headers.get('access-control-expose-headers')?.split(', ') ?? [];
    for (const name of [
      'payment-required',
      'payment-response',
      'x-payment-response',
      'x-request-id',
      'preference-applied',
      'retry-after',
      'ratelimit-limit',
      'ratelimit-remaining',
      'ratelimit-reset',
    ])
      assert.ok(exposed.includes(name), name);
  }
});

test('a well-formed x-request-id is echoed, any other is replaced, on every answer', async () => {
  const client = clientOf(fakeWorld());
  const asked = async (path: string, id: string) =>
    (await client.call(path, { headers: { 'x-request-id': id } })).headers.get('x-request-id');
  for (const path of ['/api/trust', '/nowhere', '/api/execute/webhook', '/api/jobs/%']) {
    assert.equal(await asked(path, 'Aa.0_-'), 'Aa.0_-');
    assert.equal(await asked(path, 'a'.repeat(128)), 'a'.repeat(128));
    for (const id of ['a'.repeat(129), 'two words', 'ü', '<script>'])
      assert.match((await asked(path, id)) ?? '', UUID);
  }
});

test('ids that were never given out are 404 without asking the read models, however they are spelled', async () => {
  let asked = 0;
  const find = async () => {
    asked += 1;
    return null;
  };
  const world = fakeWorld({ reads: { job: { find } }, verifyJob: () => Promise.reject(new Error('asked')) });
  const client = clientOf(world);
  for (const id of [
    'x',
    '%',
    '%E0%A4%A',
    '%00',
    '%2e%2e%2f',
    `${JOB}x`,
    JOB.toUpperCase(),
    'j'.repeat(10_000),
    '__proto__',
    'constructor',
    ':id',
    '*',
    '%F0%9F%98%80',
    'rcpt_0000000000000000000000000a',
  ]) {
    for (const path of ['/api/jobs/', '/api/verify/jobs/']) {
      const { status, code } = await errorOf(await client.call(path + id));
      assert.deepEqual([status, code], [404, 'job_not_found'], path + id.slice(0, 50));
    }
  }
  assert.equal(asked, 0);
  assert.equal((await client.call(`/api/jobs/${JOB.replace('_', '%5F')}`)).status, 404);
  assert.equal(asked, 2);
});

test('a Host that would move the path is refused', async () => {
  const client = clientOf(fakeWorld());
  for (const host of ['a/openapi.json?', 'a#', 'a?', 'user@a', 'a b', 'a\\b']) {
    const { status, code } = await errorOf(await client.call('/health/live', { headers: { host } }));
    assert.deepEqual([status, code], [400, 'invalid_request'], host);
  }
  for (const host of ['a', 'relay.example:80', '[::1]:80', '']) {
    assert.equal((await client.call('/health/live', { headers: { host } })).status, 200, host);
  }
});

test('a Host that no URL can have is refused on every route, and nothing is logged', async () => {
  const world = fakeWorld();
  const client = clientOf(world);
  for (const host of ['a:99999', 'a:abc', 'a:b:c', 'a%00b', '1.2.3.256', 'xn--', '[::1', 'a:65536']) {
    for (const path of ['/health/live', '/api/proofs/recent?limit=1', '/status', '/nowhere']) {
      const { status, code } = await errorOf(await client.call(path, { headers: { host } }));
      assert.deepEqual([status, code], [400, 'invalid_request'], `${host} ${path}`);
    }
  }
  assert.deepEqual(world.log.lines, []);
  for (const host of [
    'xn--bcher-kva.example:8080',
    'my_relay',
    'a.',
    '1.2.3.255',
    'a:65535',
    '[2001:db8::1]:443',
  ])
    assert.equal((await client.call('/api/proofs/recent?limit=1', { headers: { host } })).status, 200, host);
});

test('any Host gets its route, also one of a single letter', async () => {
  const app = appOf(fakeWorld());
  for (const host of ['a', 'ab', 'abc', 'relay.example:8080', '[::1]:80']) {
    const paths = [
      [`/api/jobs/${JOB}`, 200],
      ['/x/api/trust', 404],
    ] as const;
    for (const [path, status] of paths) {
      const response = await app.fetch(new Request(`http://${host}${path}`), { clientAddress: '::1' });
      assert.equal(response.status, status, `${host}${path}`);
    }
    const body = JSON.stringify({ url: 'https://a.example/' });
    const init = { method: 'POST', body, headers: { 'content-type': 'application/json' } };
    const request = new Request(`http://${host}/api/execute/webhook`, init);
    assert.equal((await app.fetch(request, { clientAddress: '::1' })).status, 200);
  }
});

test('X-Forwarded-For is believed from trusted proxies only, up to the first hop that is none', async () => {
  const trusted = new Set(['10.0.0.1', '10.0.0.2', 'fd00::1']);
  const cases = [
    ['198.51.100.1', '203.0.113.9', '198.51.100.1'],
    ['10.0.0.1', '203.0.113.9', '203.0.113.9'],
    ['10.0.0.1', '1.1.1.1, 203.0.113.9', '203.0.113.9'],
    ['10.0.0.1', '1.1.1.1, 203.0.113.9,10.0.0.2', '203.0.113.9'],
    ['10.0.0.1', '1.1.1.1, garbage', '10.0.0.1'],
    ['10.0.0.1', '1.1.1.1, garbage, 10.0.0.2', '10.0.0.2'],
    ['10.0.0.1', '', '10.0.0.1'],
    ['10.0.0.1', '10.0.0.2', '10.0.0.2'],
    ['::ffff:10.0.0.1', '203.0.113.9:4711', '203.0.113.9'],
    ['fd00:0::1', '[2001:db8::5]:80', '2001:db8:0:0::/64'],
    ['10.0.0.1', 'fe80::1%eth0', 'fe80:0:0:0::/64'],
    ['10.0.0.1', '999.1.1.1', '10.0.0.1'],
    ['10.0.0.1', '01.1.1.1', '10.0.0.1'],
  ] as const;
  for (const [peer, forwarded, expected] of cases) {
    const quota = countingQuota();
    const client = clientOf(
      fakeWorld({ quota, settings: { trustsProxy: (address) => trusted.has(address) } }),
    );
    await client.call(
      '/api/policy/check',
      { method: 'POST', headers: { 'x-forwarded-for': forwarded } },
      peer,
    );
    assert.deepEqual([...quota.taken.keys()], [`client-policy-check ${expected}`], `${peer} ${forwarded}`);
  }
});

test('an unexpected error is 500 without internals, also outside a route', async () => {
  const world = fakeWorld({
    settings: {
      trustsProxy: () => {
        throw new Error('secret');
      },
    },
    reads: { job: { find: () => Promise.reject(new Error('secret')) } },
  });
  const client = clientOf(world);
  const inside = await client.call(`/api/jobs/${JOB}`);
  const outside = await client.call(`/api/jobs/${JOB}`, { headers: { 'x-forwarded-for': '1.1.1.1' } });
  for (const response of [inside, outside]) {
    const { status, code, message } = await errorOf(response);
    assert.deepEqual([status, code], [500, 'internal_error']);
    assert.doesNotMatch(message, /secret/);
  }
  assert.equal(world.log.lines.length, 2);
});

test('links stand on PUBLIC_BASE_URL alone', async () => {
  const world = fakeWorld({
    settings: { baseUrl: 'https://public.example/' },
    reads: { job: { find: async () => job() } },
  });
  const { body } = await clientOf(world).get(`/api/jobs/${JOB}`);
  const links = Object.values((body as { links: Record<string, string> }).links);
  assert.ok(links.length > 3);
  for (const link of links) assert.match(link, /^https:\/\/public\.example\/(api|proof)\//);
});

test('a method that no Request can be made of is method_not_allowed, on a short host too', async () => {
  const app = appOf(fakeWorld());
  for (const method of ['TRACE', 'TRACK', 'CONNECT', 'get', 'BREW']) {
    for (const url of [
      'http://x/health/live',
      'http://relay.example/health/live',
      'http://relay.example:443',
    ]) {
      // as the runtimes' servers hand it over
      const request = Object.create(new Request('http://x/'), {
        method: { value: method },
        url: { value: url },
        headers: { value: new Headers() },
        body: { value: null },
      });
      const { status, headers } = await app.fetch(request, { clientAddress: '198.51.100.7' });
      assert.equal(status, 405, `${method} ${url}`);
      assert.match(headers.get('allow') ?? '', /^GET, HEAD/);
    }
  }
});

test('an unknown path is a page with links for a browser that reads it, and the error body for any other client', async () => {
  const client = clientOf(fakeWorld());
  const accept = 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8';
  const page = await client.call('/nowhere', { headers: { accept } });
  assert.deepEqual([page.status, page.headers.get('content-type')], [404, 'text/html; charset=utf-8']);
  const text = await page.text();
  for (const link of ['/', '/docs', '/verify', '/status']) assert.ok(text.includes(`href="${link}"`), link);
  const { status, code } = await errorOf(await client.call('/nowhere', { headers: { accept: '*/*' } }));
  assert.deepEqual([status, code], [404, 'route_not_found']);
});
