import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { temporalCalendar } from '#src/adapters/calendar/temporal.ts';
import { ROUTES } from '#src/discovery/routes.ts';
import { handOffBrowser, previewSchedule } from '#src/usecases/planning/free-plans.ts';
import { fakeProtocol } from '#test/support/chain/fakes-protocol.ts';
import { rounds, runs } from '#test/support/given/property-runs.ts';
import { publicLog } from '#test/support/log/public-log.ts';
import { clientOf } from '#test/support/process/http-client.ts';
import { world as usecaseWorld } from '#test/support/world/fakes-world.ts';
import {
  DECISION,
  decided,
  fakeWorld,
  JOB,
  paidExecution,
  policyCheck,
  RECEIPT,
} from '#test/support/world/http-deps.ts';

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
const target = fc.oneof({ weight: 3, arbitrary: fc.webUrl({ validSchemes: ['https'] }) }, url, value);
const handoffAction = fc.record(
  {
    type: fc.oneof(
      { weight: 8, arbitrary: fc.constantFrom('instruction', 'navigate', 'click', 'type', 'verify') },
      value,
    ),
    description: fc.oneof({ weight: 8, arbitrary: word }, value),
    text: fc.oneof({ weight: 8, arbitrary: word }, value),
    selector: fc.oneof({ weight: 8, arbitrary: word }, value),
  },
  { requiredKeys: ['type', 'text'] },
);
const handoffText = textOf(
  fc.record(
    {
      targetUrl: target,
      actions: fc.oneof({ weight: 8, arbitrary: fc.array(handoffAction, { maxLength: 4 }) }, value),
      returnUrl: target,
      idempotencyKey: fc.oneof({ weight: 4, arbitrary: word }, value),
    },
    { requiredKeys: ['targetUrl'] },
  ),
);
const moment = fc.oneof(
  fc
    .date({ min: new Date('2200-01-01'), max: new Date('2999-01-01'), noInvalidDate: true })
    .map((d) => d.toISOString()),
  fc.stringMatching(
    /^2[0-9]{3}-[01][0-9]-[0-3][0-9]T[0-2][0-9]:[0-5][0-9]:[0-6][0-9](Z|[+-][0-2][0-9]:[0-6][0-9])$/,
  ),
  word,
  value,
);
const zone = fc.oneof(
  fc.constantFrom('Europe/Berlin', 'utc', 'America/Santiago', '+02:00', 'Mars/Phobos', '__proto__'),
  word,
  value,
);
const schedule = fc.oneof(
  fc.record({ type: fc.constant('once'), runAt: moment }),
  fc.record({
    type: fc.constant('daily'),
    timeOfDay: fc.stringMatching(/^[0-2][0-9]:[0-5][0-9]$/),
    timezone: zone,
  }),
  fc.record({ type: word, runAt: moment, timezone: zone }, { requiredKeys: [] }),
  value,
);
const previewText = textOf(fc.record({ webhook: request, schedule }, { requiredKeys: ['webhook'] }));
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
    { numRuns: runs(1500) },
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

test('any body of a handoff, a schedule preview and the canary, to the real use cases: never 500, and every answer fits its schema', async () => {
  const { deps } = usecaseWorld();
  const real = { ...deps, calendar: temporalCalendar(), payer: null };
  const client = clientOf(
    fakeWorld({
      handOffBrowser: (asked) => handOffBrowser(real, asked),
      previewSchedule: (asked) => previewSchedule(real, asked),
    }),
  );
  const free = fc.oneof(
    fc.record({ to: fc.constant('/api/handoff/browser'), body: handoffText }),
    fc.record({ to: fc.constant('/api/schedules/preview'), body: previewText }),
    fc.record({ to: fc.constant('/api/canary/echo'), body: word }),
  );
  const seen = new Set<string>();
  const expected = ['/api/handoff/browser', '/api/schedules/preview']
    .flatMap((to) => [200, 400, 415].map((status) => `${to} ${status}`))
    .concat('/api/canary/echo 200');
  const missing = () => expected.filter((key) => !seen.has(key));
  await rounds(missing, () =>
    fc.assert(
      fc.asyncProperty(free, type, async ({ to, body }, contentType) => {
        const { status } = await client.post(to, body, { 'content-type': contentType });
        seen.add(`${to} ${status}`);
        assert.ok(status < 500, `${to} ${status}`);
      }),
      { numRuns: runs(1500) },
    ),
  );
  assert.deepEqual([...seen].sort(), expected.sort());
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
    { numRuns: runs(1000) },
  );
  for (const status of [200, 400, 402])
    assert.ok((statuses.get(status) ?? 0) >= 10, `${status}: ${statuses.get(status)}`);
});

test('any path, query and method: never 500, and every answer fits its schema', async () => {
  const { asked: transparency } = await publicLog(300);
  const client = clientOf(fakeWorld({ transparency }));
  const id = fc.oneof(
    fc.constantFrom(JOB, RECEIPT, DECISION, `${JOB}%00`, '%', '%E0%A4%A', '..', '__proto__'),
    fc.webSegment(),
    word.map(encodeSafely),
  );
  const routes = Object.values(ROUTES).map((route) => route.path);
  const oddTiles = ['/log/tile/:id', '/log/tile/0/:id', '/log/tile/entries/001.p/:id'];
  const path = fc
    .tuple(fc.constantFrom(...routes, ...oddTiles, '/:id'), id)
    .map(([template, given]) => template.replaceAll(/:\w+|\*/g, () => given));
  const query = fc.oneof(
    fc.constant(''),
    fc.webQueryParameters().map((text) => `?${text}`),
    fc
      .tuple(
        fc.constantFrom('limit', 'windowMs', 'from=1&to', 'to=300&from'),
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
    { numRuns: runs(1500) },
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
