import assert from 'node:assert/strict';
import { test } from 'node:test';
import { clientOf, errorOf } from '#test/support/process/http-client.ts';
import { letPass, manualClock } from '#test/support/world/fakes.ts';
import { countingQuota, fakeWorld } from '#test/support/world/http-deps.ts';

const PATHS = ['/api/execute/webhook', '/api/policy/check'];
const REQUEST = { url: 'https://a.example/hook' };
const KB = 1024;

/** A body that comes in pieces, without Content-Length. */
function streamed(pieces: readonly (string | Promise<string>)[]): ReadableStream<Uint8Array> {
  const left = [...pieces];
  return new ReadableStream({
    async pull(controller) {
      const piece = left.shift();
      if (piece === undefined) controller.close();
      else controller.enqueue(new TextEncoder().encode(await piece));
    },
  });
}

const send = (body: RequestInit['body'], headers: Record<string, string> = {}) =>
  ({
    method: 'POST',
    body,
    duplex: 'half',
    headers: { 'content-type': 'application/json', ...headers },
  }) as RequestInit;

test('a body of exactly 128 kB is taken, one byte more is body_too_large', async () => {
  const fit = (bytes: number) => {
    const empty = JSON.stringify({ ...REQUEST, body: '' });
    return JSON.stringify({ ...REQUEST, body: 'x'.repeat(bytes - empty.length) });
  };
  for (const path of PATHS) {
    const client = clientOf(fakeWorld());
    assert.equal((await client.post(path, fit(128 * KB))).status, 200);
    const response = await client.post(path, fit(128 * KB + 1));
    assert.equal(response.headers.get('connection'), 'close');
    const { status, code } = await errorOf(response);
    assert.deepEqual([status, code], [413, 'body_too_large']);
  }
});

test('the body is counted as it comes, whatever Content-Length says', async () => {
  const piece = 'x'.repeat(60 * KB);
  for (const headers of [{}, { 'content-length': '10' }]) {
    const world = fakeWorld();
    const endless = Array.from({ length: 1000 }, () => piece);
    const response = await clientOf(world).call('/api/execute/webhook', send(streamed(endless), headers));
    assert.equal((await errorOf(response)).code, 'body_too_large');
    assert.equal(world.executed.length, 0);
  }
});

test('a Content-Length over the limit is refused before anything is read', async () => {
  let pulled = 0;
  const body = new ReadableStream({ pull: () => void pulled++ }, { highWaterMark: 0 });
  const init = send(body, { 'content-length': String(128 * KB + 1) });
  const response = await clientOf(fakeWorld()).call('/api/execute/webhook', init);
  assert.equal(response.status, 413);
  assert.equal(pulled, 0);
});

test('a body that has not arrived within 10 s is body_timeout, and the connection is closed', async () => {
  const clock = manualClock();
  const silent = streamed(['{"url":', new Promise<string>(() => undefined)]);
  const client = clientOf(fakeWorld({ clock }));
  // it is made in real time, which this clock knows nothing of
  await client.document();
  const response = await letPass(clock, client.call('/api/execute/webhook', send(silent)));
  assert.deepEqual(clock.slept, [10_000]);
  assert.equal(response.headers.get('connection'), 'close');
  const { status, code } = await errorOf(response);
  assert.deepEqual([status, code], [408, 'body_timeout']);
});

test('a body that is there leaves no timer behind', async () => {
  const signals: AbortSignal[] = [];
  const clock = {
    ...manualClock(),
    sleep: (_: number, signal?: unknown) => {
      signals.push(signal as AbortSignal);
      return new Promise<void>(() => undefined);
    },
  };
  await clientOf(fakeWorld({ clock })).post('/api/execute/webhook', REQUEST);
  assert.deepEqual(
    signals.map(({ aborted }) => aborted),
    [true],
  );
});

test('a body in pieces within its time is one body', async () => {
  const world = fakeWorld();
  const text = JSON.stringify({ ...REQUEST, body: 'é€😀' });
  const bytes = new TextEncoder().encode(text);
  const body = new ReadableStream({
    start(controller) {
      for (const byte of bytes) controller.enqueue(Uint8Array.of(byte));
      controller.close();
    },
  });
  assert.equal((await clientOf(world).call('/api/execute/webhook', send(body))).status, 200);
  assert.deepEqual(world.executed[0]?.request, { ...REQUEST, body: 'é€😀' });
});

test('an empty body and what is no JSON in UTF-8 are invalid_json', async () => {
  const client = clientOf(fakeWorld());
  const broken = [
    undefined,
    '',
    '{',
    'null,',
    Uint8Array.of(0x22, 0xff, 0x22),
    Uint8Array.of(0x22, 0xed, 0xa0, 0x80, 0x22),
  ];
  for (const path of PATHS) {
    for (const body of broken) {
      const { status, code } = await errorOf(await client.call(path, send(body)));
      assert.deepEqual([status, code], [400, 'invalid_json'], String(body));
    }
  }
});

test('other media types, charsets and encodings are unsupported_media_type', async () => {
  const client = clientOf(fakeWorld());
  const text = JSON.stringify(REQUEST);
  const refusedHeaders = [
    { 'content-type': 'text/plain' },
    { 'content-type': 'application/jsonp' },
    { 'content-type': 'multipart/form-data; boundary=x' },
    { 'content-type': 'application/json; charset=latin1' },
    { 'content-encoding': 'gzip' },
  ];
  for (const headers of refusedHeaders) {
    const { status, code } = await errorOf(await client.call('/api/execute/webhook', send(text, headers)));
    assert.deepEqual([status, code], [415, 'unsupported_media_type'], JSON.stringify(headers));
  }
  const untyped = { method: 'POST', body: new TextEncoder().encode(text) };
  assert.equal((await client.call('/api/execute/webhook', untyped)).status, 415);
  for (const type of [
    'Application/JSON',
    'application/json; charset=UTF-8',
    'application/json;charset="utf-8"',
  ]) {
    assert.equal(
      (await client.call('/api/execute/webhook', send(text, { 'content-type': type }))).status,
      200,
    );
  }
});

test('invalid_request lists every fault by its JSON pointer, and nothing is clamped or filled in', async () => {
  const cases: [unknown, string[]][] = [
    [{}, ['/url']],
    [{ ...REQUEST, extra: 1 }, ['/extra']],
    [
      { ...REQUEST, retry: { attempts: 4, backoffMs: -1, more: 1 } },
      ['/retry/attempts', '/retry/backoffMs', '/retry/more'],
    ],
    [{ ...REQUEST, timeoutMs: 5 }, ['/timeoutMs']],
    [{ ...REQUEST, timeoutMs: '5000' }, ['/timeoutMs']],
    [{ ...REQUEST, timeoutMs: 1000.5 }, ['/timeoutMs']],
    [{ ...REQUEST, method: 'post' }, ['/method']],
    [{ ...REQUEST, method: 'GET' }, ['/method']],
    [{ ...REQUEST, method: null }, ['/method']],
    [{ url: 'http://a.example' }, ['/url']],
    [{ url: 'javascript:alert(1)' }, ['/url']],
    [{ url: '/relative' }, ['/url']],
    [{ url: 'https://' }, ['/url']],
    [{ url: `https://a.example/${'x'.repeat(4096)}` }, ['/url']],
    [{ ...REQUEST, idempotencyKey: 'k'.repeat(161) }, ['/idempotencyKey']],
    [{ ...REQUEST, idempotencyKey: '' }, ['/idempotencyKey']],
    [{ ...REQUEST, headers: { a: null, 'b/c': [] } }, ['/headers/a', '/headers/b~1c']],
    [[], ['']],
    [null, ['']],
    ['text', ['']],
  ];
  for (const path of PATHS) {
    const client = clientOf(fakeWorld());
    for (const [body, expected] of cases) {
      const { status, code, details } = await errorOf(await client.post(path, JSON.stringify(body)));
      assert.deepEqual([status, code], [400, 'invalid_request'], JSON.stringify(body).slice(0, 80));
      const paths = (details as { path: string; message: string }[]).map((fault) => fault.path);
      assert.deepEqual(paths.sort(), expected, JSON.stringify(body).slice(0, 80));
    }
  }
});

test('what is wrong with an address is named: its length, or that it is no HTTPS URL', async () => {
  const long = 'x'.repeat(4096);
  for (const [url, said] of [
    [`https://a.example/${long}`, /length.*4096/],
    [`http://a.example/${long}`, /length.*4096/],
    ['http://a.example/', /^Expected an absolute HTTPS URL$/],
    ['https://', /^Expected an absolute HTTPS URL$/],
  ] as const) {
    const { details } = await errorOf(await clientOf(fakeWorld()).post('/api/policy/check', { url }));
    const [fault] = details as { message: string }[];
    assert.match(fault?.message ?? '', said);
  }
});

test('JSON that readers would read differently is invalid_request', async () => {
  const client = clientOf(fakeWorld());
  const cases = [
    ['{"url":"https://a.example/","body":9007199254740993}', '/body'],
    ['{"url":"https://a.example/","url":"https://b.example/"}', '/url'],
    ['{"url":"https://a.example/","body":"\\ud800"}', '/body'],
    [`{"url":"https://a.example/","body":${'['.repeat(64)}${']'.repeat(64)}}`, ''],
  ] as const;
  for (const [text, path] of cases) {
    const { code, details } = await errorOf(await client.post('/api/execute/webhook', text));
    assert.equal(code, 'invalid_request');
    assert.deepEqual(
      (details as { path: string }[]).map((fault) => fault.path),
      [path],
    );
  }
});

test('a fault in a caller’s own long names is reported in short', async () => {
  const body = {
    ...REQUEST,
    ...Object.fromEntries(Array.from({ length: 100 }, (_, i) => [`${i}${'n'.repeat(1000)}`, 1])),
  };
  const response = await clientOf(fakeWorld()).post('/api/execute/webhook', body);
  const text = await response.text();
  assert.equal(response.status, 400);
  assert.ok(text.length < 16 * KB, `${text.length}`);
});

test('__proto__ in a body is an unknown property, and inside `body` it is data', async () => {
  const world = fakeWorld();
  const client = clientOf(world);
  const outside = await client.post('/api/execute/webhook', '{"__proto__":{"url":"https://a.example/"}}');
  assert.equal(outside.status, 400);
  const inside = await client.post(
    '/api/execute/webhook',
    '{"url":"https://a.example/","body":{"__proto__":{"x":1}}}',
  );
  assert.equal(inside.status, 200);
  assert.equal(JSON.stringify(world.executed[0]?.request.body), '{"__proto__":{"x":1}}');
});

test('an absent body stays absent, null stays null, an international host passes', async () => {
  const world = fakeWorld();
  const client = clientOf(world);
  for (const request of [REQUEST, { ...REQUEST, body: null }, { url: 'https://bücher.example/ö' }]) {
    assert.equal((await client.post('/api/execute/webhook', request)).status, 200);
  }
  assert.deepEqual(
    world.executed.map(({ request }) => request),
    [REQUEST, { ...REQUEST, body: null }, { url: 'https://bücher.example/ö' }],
  );
});

test('over the rate: rate_limited with Retry-After and RateLimit headers, each route for itself', async () => {
  const client = clientOf(fakeWorld({ quota: countingQuota(2), settings: { rateLimitPerMinute: 2 } }));
  for (const path of PATHS) {
    const first = await client.post(path, REQUEST);
    assert.equal(first.status, 200);
    assert.equal(first.headers.get('ratelimit-remaining'), '1');
    await client.post(path, REQUEST);
    const response = await client.post(path, REQUEST);
    const { headers } = response;
    assert.equal(headers.get('retry-after'), '31');
    assert.equal(headers.get('ratelimit-limit'), '2');
    assert.equal(headers.get('ratelimit-remaining'), '0');
    assert.equal(headers.get('ratelimit-reset'), '31');
    assert.equal(headers.get('ratelimit-policy'), '2;w=60');
    const { status, code } = await errorOf(response);
    assert.deepEqual([status, code], [429, 'rate_limited']);
  }
});

test('the rate counts client addresses, IPv6 by /64, reads not at all', async () => {
  const quota = countingQuota();
  const client = clientOf(fakeWorld({ quota }));
  const init = send(JSON.stringify(REQUEST));
  await client.call('/api/execute/webhook', init, '2001:db8::1');
  await client.call('/api/execute/webhook', init, '2001:db8:0:0:ffff::2');
  await client.call('/api/execute/webhook', init, '::ffff:198.51.100.7');
  await client.call('/api/execute/webhook', init, '198.51.100.7');
  await client.call('/api/trust');
  assert.deepEqual(
    [...quota.taken],
    [
      ['client-execute 2001:db8:0:0::/64', 2],
      ['client-execute 198.51.100.7', 2],
    ],
  );
});
