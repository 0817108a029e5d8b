// The canary: returns size and hash of what arrived, and keeps nothing.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { ROUTES } from '#src/discovery/routes.ts';
import { CANARY_PATH, ownHostOf } from '#src/domain/destination/url.ts';
import { sha256 } from '#test/support/given/primitives.ts';
import { runs } from '#test/support/given/property-runs.ts';
import { clientOf, errorOf } from '#test/support/process/http-client.ts';
import { manualClock } from '#test/support/world/fakes.ts';
import { countingQuota, fakeWorld } from '#test/support/world/http-deps.ts';

const PATH = '/api/canary/echo';
const hex = (bytes: Uint8Array | string) => Buffer.from(sha256(bytes)).toString('hex');

type Echo = Record<string, unknown>;

async function send(
  body: RequestInit['body'] | null,
  headers: Record<string, string> = {},
  it = fakeWorld(),
): Promise<Echo> {
  const init = body === null ? { headers } : { method: 'POST', body, headers };
  const response = await clientOf(it).call(PATH, init);
  assert.equal(response.status, 200);
  assert.equal(response.headers.get('cache-control'), 'no-store');
  return (await response.json()) as Echo;
}

test('the address of ours that may be called is the canary’s', () => {
  assert.equal(CANARY_PATH, ROUTES.canary.path);
  assert.equal(CANARY_PATH, ROUTES.canaryPost.path);
  assert.equal(
    ownHostOf(new URL('https://relay.example/')).canary,
    `https://relay.example${ROUTES.canary.path}`,
  );
});

test('what arrived: method, time, id, size and hash', async () => {
  const clock = manualClock();
  const it = fakeWorld({ clock });
  const receivedAt = new Date(clock.now()).toISOString();
  const plain = { ok: true, service: 'webhook-relay', receivedAt, requestId: 'r1' };
  assert.deepEqual(await send(null, { 'x-request-id': 'r1' }, it), {
    ...plain,
    method: 'GET',
    bodyBytes: 0,
    bodySha256: hex(''),
  });
  const body = '{"text":"größer"}';
  const headers = { 'x-request-id': 'r1', 'content-type': 'application/json; charset=utf-8' };
  assert.deepEqual(await send(body, headers, it), {
    ...plain,
    method: 'POST',
    bodyBytes: Buffer.byteLength(body),
    bodySha256: hex(body),
  });
});

test('any bytes of any type are taken, and none of them comes back', async () => {
  const client = clientOf(fakeWorld());
  await fc.assert(
    fc.asyncProperty(fc.uint8Array({ maxLength: 2000 }), async (bytes) => {
      const response = await client.call(PATH, { method: 'POST', body: Uint8Array.from(bytes) });
      const echo = (await response.json()) as Echo;
      assert.deepEqual([response.status, echo.bodyBytes, echo.bodySha256], [200, bytes.length, hex(bytes)]);
    }),
    { numRuns: runs(50) },
  );
  const secret = 'zq7hunter2';
  const headers = {
    'content-type': 'text/plain',
    authorization: `Bearer ${secret}`,
    cookie: secret,
    'x-own': secret,
    'user-agent': secret,
    'webhook-signature': `v1,${secret}`,
    'webhook-id': 'msg_1',
    'webhook-timestamp': '1767225600',
  };
  const it = fakeWorld();
  const response = await clientOf(it).call(`${PATH}?${secret}`, { method: 'POST', body: secret, headers });
  assert.doesNotMatch(`${await response.text()}${JSON.stringify([...response.headers])}`, /hunter2/);
  assert.deepEqual(it.log.lines, []);
});

test('a body of 128 kB is taken, one byte more is body_too_large', async () => {
  const whole = 'x'.repeat(128 * 1024);
  assert.equal((await send(whole)).bodyBytes, 128 * 1024);
  const client = clientOf(fakeWorld());
  const { status, code } = await errorOf(await client.call(PATH, { method: 'POST', body: `${whole}x` }));
  assert.deepEqual([status, code], [413, 'body_too_large']);
});

test('ten times as many calls as of other routes, by client address, GET and POST together', async () => {
  const rules: number[] = [];
  const counting = countingQuota(3);
  const quota: typeof counting = {
    ...counting,
    take(rule, key) {
      rules.push(rule.maxRequests);
      return counting.take(rule, key);
    },
  };
  const client = clientOf(fakeWorld({ quota, settings: { rateLimitPerMinute: 7 } }));
  const statuses = [];
  for (const method of ['GET', 'POST', 'GET', 'POST'])
    statuses.push((await client.call(PATH, { method })).status);
  assert.deepEqual(statuses, [200, 200, 200, 429]);
  assert.deepEqual([...counting.taken], [['client-canary 198.51.100.7', 4]]);
  assert.deepEqual([...new Set(rules)], [70]);
});
