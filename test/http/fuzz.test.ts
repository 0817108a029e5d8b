import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { fakeProtocol } from '#test/support/fakes-protocol.ts';
import { clientOf } from '#test/support/http-client.ts';
import {
  DECISION,
  decided,
  fakeWorld,
  JOB,
  paidExecution,
  policyCheck,
  RECEIPT,
} from '#test/support/http-deps.ts';

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
const text = textOf(request);
/** The same as an action of a decision. */
const guidedText = textOf(
  fc.oneof(
    {
      weight: 4,
      arbitrary: fc.record({ decisionId: fc.constant(DECISION), action: request }),
    },
    fc.record({ decisionId: fc.oneof(word, value), action: fc.oneof(request, value) }),
  ),
);
const policy = fc.record(
  {
    maxPriceUsd: fc.oneof(fc.constantFrom('0.003', '1', '-1', '0.0000001'), value),
    requireReceipt: fc.oneof(fc.boolean(), value),
    minTrustScore: fc.oneof(fc.integer({ min: -1, max: 101 }), value),
    allowedNetworks: fc.oneof(fc.array(word), value),
    extra: value,
  },
  { requiredKeys: [] },
);
const decideText = textOf(
  fc.oneof(
    { weight: 2, arbitrary: fc.record({ action: valid, buyerPolicy: fc.constant({ minTrustScore: 60 }) }) },
    fc.record(
      { action: fc.oneof(request, value), buyerPolicy: fc.oneof(policy, value) },
      { requiredKeys: [] },
    ),
  ),
);
const type = fc.oneof(
  { weight: 8, arbitrary: fc.constant('application/json') },
  fc.constantFrom('', 'text/plain', 'application/json;charset=utf-16', ';'),
);

const call = fc.oneof(
  fc.record({ to: fc.constantFrom('/api/execute/webhook', '/api/policy/check'), body: text }),
  fc.record({ to: fc.constant('/api/execute/guided-webhook'), body: guidedText }),
  fc.record({ to: fc.constant('/api/decide/webhook'), body: decideText }),
);

test('any body of executions, decisions and policy check: never 500, and every answer fits its schema', async () => {
  const statuses = new Map<number, number>();
  let decisions = 0;
  const world = fakeWorld({
    async decide() {
      decisions++;
      return decided();
    },
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
  await fc.assert(
    fc.asyncProperty(call, type, async ({ to, body }, contentType) => {
      const response = await client.post(to, body, { 'content-type': contentType });
      statuses.set(response.status, (statuses.get(response.status) ?? 0) + 1);
      assert.ok(response.status < 500, `${response.status}`);
    }),
    { numRuns: 1500 },
  );
  for (const status of [200, 400, 415])
    assert.ok((statuses.get(status) ?? 0) >= 10, `${status}: ${statuses.get(status)}`);
  assert.ok(world.executedGuided.length >= 10);
  assert.ok(decisions >= 10, `${decisions}`);
  const requests = world.executed.map(({ request }) => request);
  for (const request of [...requests, ...world.executedGuided.map(({ action }) => action)]) {
    assert.deepEqual(
      Object.keys(request).filter(
        (name) =>
          !['url', 'method', 'headers', 'body', 'idempotencyKey', 'retry', 'timeoutMs'].includes(name),
      ),
      [],
    );
  }
});

test('any body with any payment header, paid for or not: never 500, and every answer fits its schema', async () => {
  const statuses = new Map<number, number>();
  const client = clientOf(
    fakeWorld({ payments: fakeProtocol(), execute: async () => paidExecution(), settings: { mode: 'x402' } }),
  );
  const header = fc.oneof(fc.constantFrom('paid', '', ' '), fc.stringMatching(/^[ -~\u00a0-\u00ff]{0,40}$/));
  const headers = fc.record({ 'payment-signature': header, 'x-payment': header }, { requiredKeys: [] });
  await fc.assert(
    fc.asyncProperty(call, type, headers, async ({ to, body }, contentType, payment) => {
      const response = await client.post(to, body, { 'content-type': contentType, ...payment });
      statuses.set(response.status, (statuses.get(response.status) ?? 0) + 1);
      assert.ok(response.status < 500, `${response.status}`);
      assert.equal(response.headers.has('payment-required'), response.status === 402);
    }),
    { numRuns: 1000 },
  );
  for (const status of [200, 400, 402])
    assert.ok((statuses.get(status) ?? 0) >= 10, `${status}: ${statuses.get(status)}`);
});

test('any id, query and method of the reads: never 500, and every answer fits its schema', async () => {
  const client = clientOf(fakeWorld());
  const id = fc.oneof(
    fc.constantFrom(JOB, RECEIPT, DECISION, `${JOB}%00`, '%', '%E0%A4%A', '..', '__proto__'),
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
          '/api/decisions/',
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
      '/.well-known/did.json',
      '/api/decisions/recent',
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

/** A good one as JSON, or JSON of anything, or one with a character exchanged, put in or left away. */
function textOf(good: fc.Arbitrary<unknown>): fc.Arbitrary<string> {
  return fc.oneof(
    { weight: 6, arbitrary: good.map((body) => JSON.stringify(body)) },
    value.map((body) => JSON.stringify(body)),
    word,
    fc
      .tuple(good, fc.nat(), fc.constantFrom('', '"', '{', '[', '\\', '1e999', '\\ud800', ',', '\u0000'))
      .map(([body, at, put]) => {
        const whole = JSON.stringify(body);
        const place = at % whole.length;
        return whole.slice(0, place) + put + whole.slice(place + 1);
      }),
  );
}
