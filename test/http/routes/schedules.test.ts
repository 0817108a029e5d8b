// Paid schedules on the wire: off, nothing of them is served or described; on, all documents have them.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { SCHEDULE_REQUEST_EXAMPLE } from '#src/discovery/schedule-examples.ts';
import { refused } from '#src/domain/refusal.ts';
import { absentSchedule, evolveSchedule, type Schedule } from '#src/domain/schedule/state.ts';
import type { App } from '#src/http/app.ts';
import { createApp } from '#src/http/app.ts';
import type { SchedulesDeps } from '#src/http/routes/schedules.ts';
import type { PaymentProtocol } from '#src/ports/payment-protocol.ts';
import { VaultUnavailable } from '#src/ports/vault.ts';
import type { Bought } from '#src/usecases/schedules/buy-run.ts';
import { fakeProtocol } from '#test/support/chain/fakes-protocol.ts';
import { runFunded, SCHEDULE_ID, scheduleDefined } from '#test/support/given/given-events.ts';
import { BASE, fakeWorld } from '#test/support/world/http-deps.ts';

const never = async () => refused('route_not_found', 'none');
const schedules: SchedulesDeps = {
  quoteSchedule: never,
  quoteRun: () => refused('route_not_found', 'none'),
  create: never,
  fund: never,
  cancel: never,
  upcoming: () => [],
  find: async () => ({
    scheduleId: SCHEDULE_ID,
    status: 'active',
    schedule: { type: 'once', runAt: '2999-01-01T00:00:00Z' },
    catchUpSeconds: 300,
    definedAt: '2026-01-01T00:00:00.000Z',
    endsAt: '2026-02-01T00:00:00.000Z',
    nextRun: null,
    nextDueAt: null,
    open: 0,
    runs: [],
  }),
  progress: { reachedHead: async () => true },
};

function appOf(
  on: boolean,
  changes: Partial<SchedulesDeps> = {},
  payments: PaymentProtocol | null = null,
): App {
  const world = fakeWorld({ payments });
  const settings = { ...world.settings, ...(on ? { schedules: { horizonDays: 30 } } : {}) };
  const all = { ...world, settings };
  return createApp({
    request: all,
    execute: all,
    decisions: all,
    reads: all,
    log: all,
    health: all,
    ...(on ? { schedules: { ...schedules, ...changes } } : {}),
  });
}

const call = (app: App, path: string, method = 'GET', headers: Record<string, string> = {}) =>
  app.fetch(new Request(`${BASE}${path}`, { method, headers }), { clientAddress: '127.0.0.1' });
type Shown = {
  readonly status: string;
  readonly price: string;
  readonly runs: readonly unknown[];
  readonly scheduledActions: {
    readonly status: string;
    readonly availability: string;
    readonly endpoint: object;
  };
  readonly paths: Record<
    string,
    Record<string, Record<string, { readonly price: { readonly amount: string } }>>
  >;
  readonly limits: readonly { readonly name: string }[];
  readonly doesNot: readonly string[];
  readonly paidRoutes: readonly { readonly actionId: string }[];
  readonly tools: readonly { readonly name: string }[];
};
const json = async (app: App, path: string) => (await (await call(app, path)).json()) as Shown;

test('off: the routes answer 404, and documents say that scheduling is not active', async () => {
  const app = appOf(false);
  for (const [path, method] of [
    ['/api/schedules/webhook', 'POST'],
    [`/api/schedules/${SCHEDULE_ID}/runs`, 'POST'],
    [`/api/schedules/${SCHEDULE_ID}`, 'GET'],
    [`/api/schedules/${SCHEDULE_ID}`, 'DELETE'],
  ] as const)
    assert.equal((await call(app, path, method)).status, 404, path);
  const catalog = await json(app, '/api/actions');
  assert.equal(catalog.scheduledActions.status, 'preview-only');
  assert.match(catalog.scheduledActions.availability, /Durable paid scheduling is not active/);
  const text = JSON.stringify(await json(app, '/openapi.json'));
  assert.ok(!text.includes('createSchedule') && !text.includes('/api/schedules/{id}'));
});

test('on: every document has them, in at most 40 operations', async () => {
  const app = appOf(true);
  const catalog = await json(app, '/api/actions');
  assert.equal(catalog.scheduledActions.status, 'active');
  assert.deepEqual(catalog.scheduledActions.endpoint, {
    method: 'POST',
    path: '/api/schedules/webhook',
    paid: true,
  });
  const { paths } = await json(app, '/openapi.json');
  const operations = Object.values(paths).flatMap((path) => Object.values(path as object));
  assert.ok(operations.length <= 40, `${operations.length} operations`);
  assert.deepEqual(
    ['/api/schedules/webhook', '/api/schedules/{id}/runs', '/api/schedules/{id}'].map((path) =>
      Object.keys(paths[path] ?? {}).sort(),
    ),
    [['post'], ['post'], ['delete', 'get']],
  );
  assert.equal(paths['/api/schedules/webhook']?.post?.['x-payment-info']?.price.amount, '0.003');
  const capabilities = await json(app, '/api/schedules/capabilities');
  assert.deepEqual([capabilities.status, capabilities.price], ['active', '$0.003']);
  const all = await json(app, '/api/capabilities');
  assert.ok(all.limits.some(({ name }) => name === 'ticketsPerPayer'));
  assert.ok(!JSON.stringify(all.doesNot).includes('Schedule or repeat'));
  const { paidRoutes } = await json(app, '/api/pricing');
  assert.equal(paidRoutes.filter(({ actionId }) => actionId === 'scheduled.webhook').length, 2);
  const { tools } = await json(app, '/api/mcp');
  assert.ok(tools.some(({ name }) => name === 'create_schedule'));
  assert.match(await (await call(app, '/llms.txt')).text(), /Schedules/);
});

test('a schedule is completed when no run is left; unknown ids and tokens are 404', async () => {
  const app = appOf(true);
  const shown = await json(app, `/api/schedules/${SCHEDULE_ID}`);
  assert.deepEqual([shown.status, shown.runs], ['completed', []]);
  assert.equal((await call(app, '/api/schedules/sch_x')).status, 404);
  const wrong = await call(app, `/api/schedules/${SCHEDULE_ID}`, 'DELETE', { authorization: 'Bearer x' });
  assert.equal(wrong.status, 404);
  const preflight = await call(app, `/api/schedules/${SCHEDULE_ID}`, 'OPTIONS');
  assert.match(preflight.headers.get('access-control-allow-methods') ?? '', /DELETE/);
  assert.match(preflight.headers.get('access-control-allow-headers') ?? '', /authorization/);
});

const order = JSON.stringify(SCHEDULE_REQUEST_EXAMPLE);
const JSON_BODY = { 'content-type': 'application/json' };
const post = (app: App, path: string, body: string | null, headers: Record<string, string> = JSON_BODY) =>
  app.fetch(new Request(`${BASE}${path}`, { method: 'POST', headers, body }), { clientAddress: '127.0.0.1' });

test('a header Idempotency-Key is refused, since a run is known by its payment, before one is asked for: nothing is bought', async () => {
  let asked = 0;
  const bought = async () => {
    asked++;
    return refused('route_not_found', 'none');
  };
  for (const payments of [null, fakeProtocol()]) {
    const app = appOf(true, { fund: bought, create: bought }, payments);
    for (const [path, body] of [
      ['/api/schedules/preview', order],
      ['/api/schedules/webhook', order],
      [`/api/schedules/${SCHEDULE_ID}/runs`, null],
    ] as const) {
      const response = await post(app, path, body, { ...JSON_BODY, 'idempotency-key': 'k' });
      assert.equal(response.status, 400);
      assert.match(await response.text(), /header Idempotency-Key/);
    }
    assert.deepEqual(payments?.challenged ?? [], []);
  }
  assert.equal(asked, 0);
});

test('the quote of a further run is made of the row of its schedule: no stream is read for a request without a payment', async () => {
  const reads = async () => assert.fail('a quote is free');
  const run = { run: 2, dueAt: '2026-01-02T00:00:00.000Z' };
  const app = appOf(
    true,
    {
      fund: reads,
      create: reads,
      cancel: reads,
      quoteRun: () => ({ run, untilMs: 0, maxTimeoutSeconds: 777 }),
    },
    fakeProtocol(),
  );
  for (let n = 0; n < 60; n++) {
    const response = await post(app, `/api/schedules/${SCHEDULE_ID}/runs`, null);
    assert.equal(response.status, 402);
  }
});

test('what a schedule that fits its schema would be refused for is a hint of the 402', async () => {
  const details = [{ path: '/schedule/timezone', message: 'Expected the name of an IANA time zone' }];
  const quoteSchedule = async () => refused('invalid_schedule', 'It is invalid.', { details });
  const app = appOf(true, { quoteSchedule }, fakeProtocol());
  const response = await post(app, '/api/schedules/webhook', order);
  const { validation } = (await response.json()) as { validation?: unknown };
  assert.deepEqual([response.status, validation], [402, details]);
});

test('body_is_json: a body under a content type that is not JSON, in the answer of a purchase, of a repeat too', async () => {
  const schedule = [scheduleDefined(), runFunded()].reduce<Schedule>(evolveSchedule, absentSchedule);
  assert.ok(schedule.status !== 'absent');
  const bought: Bought = { schedule, run: schedule.tickets[0] ?? assert.fail(), cancelToken: null };
  const app = appOf(true, { create: async () => bought });
  const { webhook } = SCHEDULE_REQUEST_EXAMPLE;
  for (const [type, expected] of [
    ['text/plain', ['body_is_json']],
    ['application/json', undefined],
  ] as const) {
    const headers = { 'content-type': type };
    const text = JSON.stringify({ ...SCHEDULE_REQUEST_EXAMPLE, webhook: { ...webhook, headers } });
    const response = await post(app, '/api/schedules/webhook', text);
    const { warnings } = (await response.json()) as { warnings?: { code: string }[] };
    assert.deepEqual([response.status, warnings?.map(({ code }) => code)], [201, expected]);
  }
});

test('the keys of the schedules cannot be read or written: 503, to be repeated, and no defect', async () => {
  const app = appOf(true, { fund: () => Promise.reject(new VaultUnavailable(new Error('no disk'))) });
  const response = await call(app, `/api/schedules/${SCHEDULE_ID}/runs`, 'POST');
  const { error } = (await response.json()) as { error: { code: string; message: string } };
  assert.deepEqual(
    [response.status, error.code, response.headers.get('retry-after')],
    [503, 'schedules_unavailable', '5'],
  );
  assert.doesNotMatch(error.message, /no disk/);
});
