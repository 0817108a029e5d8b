import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { clientOf } from '#test/support/http-client.ts';
import { fakeWorld, JOB, policyCheck, RECEIPT } from '#test/support/http-deps.ts';

const word = fc.string({ unit: 'binary', maxLength: 30 });
const url = fc.oneof(
  fc.webUrl({ validSchemes: ['https', 'http'] }),
  fc.constant('https://bücher.example/?q'),
  word,
);
const value = fc.jsonValue({ maxDepth: 3 });

const valid = fc.record(
  {
    url: fc.webUrl({ validSchemes: ['https'] }),
    method: fc.constantFrom('POST', 'PUT', 'PATCH', 'DELETE'),
    headers: fc.dictionary(
      fc.stringMatching(/^[a-z-]{1,10}$/),
      fc.oneof(fc.string(), fc.integer(), fc.boolean()),
    ),
    body: value,
    idempotencyKey: fc.string({ minLength: 1, maxLength: 160 }),
    retry: fc.record(
      { attempts: fc.integer({ min: 1, max: 3 }), backoffMs: fc.integer({ min: 0, max: 5000 }) },
      { requiredKeys: [] },
    ),
    timeoutMs: fc.integer({ min: 1000, max: 12_000 }),
  },
  { requiredKeys: ['url'] },
);
const wild = fc.record(
  {
    url: fc.oneof(url, value),
    method: fc.oneof(fc.constantFrom('GET', 'post'), value),
    headers: fc.oneof(fc.dictionary(word, fc.oneof(word, fc.double(), value)), value),
    idempotencyKey: fc.oneof(fc.string({ minLength: 161, maxLength: 170 }), value),
    retry: fc.oneof(
      fc.record({ attempts: fc.integer({ min: 0, max: 4 }), backoffMs: fc.integer({ min: -1, max: 5001 }) }),
      value,
    ),
    timeoutMs: fc.oneof(fc.integer({ min: 999, max: 12_001 }), fc.double(), value),
    extra: value,
  },
  { requiredKeys: [] },
);
/** Good ones, and good ones with some fields exchanged for others. */
const request = fc.oneof(
  valid,
  fc.tuple(valid, wild).map(([good, other]) => ({ ...good, ...other })),
);
const text = fc.oneof(
  { weight: 6, arbitrary: request.map((body) => JSON.stringify(body)) },
  value.map((body) => JSON.stringify(body)),
  word,
  // A good request with one character exchanged, put in or left away.
  fc
    .tuple(request, fc.nat(), fc.constantFrom('', '"', '{', '[', '\\', '1e999', '\\ud800', ',', '\u0000'))
    .map(([body, at, put]) => {
      const whole = JSON.stringify(body);
      const place = at % whole.length;
      return whole.slice(0, place) + put + whole.slice(place + 1);
    }),
);
const type = fc.oneof(
  { weight: 8, arbitrary: fc.constant('application/json') },
  fc.constantFrom('', 'text/plain', 'application/json;charset=utf-16', ';'),
);

test('any body of execution and policy check: never 500, and every answer fits its schema', async () => {
  const statuses = new Map<number, number>();
  const world = fakeWorld({
    checkPolicy: async ({ request }) =>
      policyCheck({
        normalized: {
          ...policyCheck().normalized,
          method: request.method ?? 'POST',
          forwardedHeaders: Object.keys(request.headers ?? {}),
        },
      }),
  });
  const client = clientOf(world);
  const path = fc.constantFrom('/api/execute/webhook', '/api/policy/check');
  await fc.assert(
    fc.asyncProperty(path, text, type, async (to, body, contentType) => {
      const response = await client.post(to, body, { 'content-type': contentType });
      statuses.set(response.status, (statuses.get(response.status) ?? 0) + 1);
      assert.ok(response.status < 500, `${response.status}`);
    }),
    { numRuns: 1500 },
  );
  for (const status of [200, 400, 415])
    assert.ok((statuses.get(status) ?? 0) >= 10, `${status}: ${statuses.get(status)}`);
  for (const { request } of world.executed) {
    assert.deepEqual(
      Object.keys(request).filter(
        (name) =>
          !['url', 'method', 'headers', 'body', 'idempotencyKey', 'retry', 'timeoutMs'].includes(name),
      ),
      [],
    );
  }
});

test('any id, query and method of the reads: never 500, and every answer fits its schema', async () => {
  const client = clientOf(fakeWorld());
  const id = fc.oneof(
    fc.constantFrom(JOB, RECEIPT, `${JOB}%00`, '%', '%E0%A4%A', '..', '__proto__'),
    fc.webSegment(),
    word.map(encodeSafely),
  );
  const path = fc.oneof(
    fc
      .tuple(
        fc.constantFrom(
          '/api/jobs/',
          '/api/receipts/',
          '/api/verify/jobs/',
          '/api/verify/receipts/',
          '/proof/',
          '/',
        ),
        id,
      )
      .map(([base, rest]) => base + rest),
    id.map((given) => `/proof/${given}/badge.svg`),
    fc.constantFrom(
      '/api/proofs/recent',
      '/api/monitoring/executions',
      '/api/trust',
      '/health',
      '/health/live',
      '/.well-known/jwks.json',
      '/openapi.json',
    ),
  );
  const query = fc.oneof(
    fc.constant(''),
    fc.webQueryParameters().map((text) => `?${text}`),
    fc
      .tuple(
        fc.constantFrom('limit', 'windowMs'),
        fc.oneof(fc.integer().map(String), fc.webQueryParameters()),
      )
      .map(([name, text]) => `?${name}=${text}`),
  );
  const method = fc.oneof(
    { weight: 6, arbitrary: fc.constant('GET') },
    fc.constantFrom('POST', 'PUT', 'DELETE', 'OPTIONS', 'HEAD', 'PATCH'),
  );
  const header = fc.record({
    'x-request-id': fc.stringMatching(/^[ -~]{0,140}$/),
    'x-forwarded-for': fc.stringMatching(/^[0-9a-f:., []{0,40}$/),
  });
  await fc.assert(
    fc.asyncProperty(path, query, method, header, async (to, text, how, headers) => {
      const response = await client.call(to + text, { method: how, headers });
      assert.ok(response.status < 500, `${response.status}`);
    }),
    { numRuns: 1500 },
  );
});

/** As `encodeURIComponent`, where half a character is given as it is. */
function encodeSafely(text: string): string {
  try {
    return encodeURIComponent(text);
  } catch {
    return '%ED%A0%80';
  }
}
