// The schedule preview over HTTP: strict about what comes in, and what goes out fits its description.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { temporalCalendar } from '#src/adapters/calendar/temporal.ts';
import { portableSchema } from '#src/domain/portable-schema.ts';
import { refused } from '#src/domain/refusal.ts';
import { SchedulePreviewRequest } from '#src/domain/schedule/preview.ts';
import { previewSchedule } from '#src/usecases/planning/free-plans.ts';
import { clientOf, errorOf } from '#test/support/process/http-client.ts';
import { world } from '#test/support/world/fakes-world.ts';
import {
  BASE,
  countingQuota,
  fakeWorld,
  policyCheck,
  schedulePreview,
} from '#test/support/world/http-deps.ts';

const PATH = '/api/schedules/preview';
const WEBHOOK = { url: 'https://a.example/hook', body: { text: 'hi' } };
const ONCE = { type: 'once', runAt: '2099-01-01T00:00:00Z' };
const DAILY = { type: 'daily', timeOfDay: '09:00', timezone: 'Europe/Berlin' };

/** The room before the real use case, whose target is looked up by a fake. */
function realWorld(changes: Parameters<typeof fakeWorld>[0] = {}) {
  const { deps } = world();
  const real = { ...deps, calendar: temporalCalendar(), payer: null };
  return fakeWorld({ previewSchedule: (request) => previewSchedule(real, request), ...changes });
}

type Answer = {
  readonly ok: boolean;
  readonly allowed: boolean;
  readonly error?: { readonly code: string };
  readonly preview: {
    readonly schedule: unknown;
    readonly nextRuns: readonly string[];
    readonly webhook: Record<string, unknown>;
    readonly target: unknown;
  };
};

test('a preview is answered whole: nothing paid, nothing executed, absolute links', async () => {
  const asked: SchedulePreviewRequest[] = [];
  const client = clientOf(
    fakeWorld({
      async previewSchedule(request) {
        asked.push(request);
        return schedulePreview();
      },
    }),
  );
  const response = await client.post(PATH, { webhook: WEBHOOK, schedule: ONCE });
  assert.equal(response.status, 200);
  assert.deepEqual(asked, [{ webhook: WEBHOOK, schedule: ONCE }]);
  const { schedule, nextRuns, warnings } = schedulePreview();
  assert.deepEqual(await response.json(), {
    ok: true,
    allowed: true,
    status: 'preview-only',
    paid: false,
    willExecute: false,
    preview: {
      schedule,
      nextRuns,
      webhook: policyCheck().normalized,
      target: policyCheck().target,
    },
    paymentPolicy: {
      previewCharged: false,
      futurePaidSchedulingActive: false,
      recommendedChargeModel: 'per-executed-run',
    },
    warnings,
    next: {
      capabilities: `${BASE}/api/schedules/capabilities`,
      decide: `${BASE}/api/decide/webhook`,
      execute: `${BASE}/api/execute/webhook`,
    },
  });
});

test('a refused target is 200, allowed false, with the error beside the preview', async () => {
  const webhook = { url: 'https://10.0.0.1/' };
  const response = await clientOf(realWorld()).post(PATH, { webhook, schedule: DAILY });
  const { ok, allowed, error, preview } = (await response.json()) as Answer;
  assert.deepEqual([response.status, ok, allowed, error?.code], [200, false, false, 'unsafe_target']);
  assert.equal(preview.nextRuns.length, 3);
});

test('invalid_request: anything wrong at the top or in the webhook, by its place', async () => {
  const client = clientOf(realWorld());
  for (const [body, path] of [
    [{ schedule: DAILY }, '/webhook'],
    [{ webhook: WEBHOOK, schedule: DAILY, more: 1 }, '/more'],
    [{ webhook: { ...WEBHOOK, more: 1 }, schedule: DAILY }, '/webhook/more'],
    [{ webhook: { ...WEBHOOK, method: 'post' }, schedule: DAILY }, '/webhook/method'],
    [{ webhook: { ...WEBHOOK, url: 'http://a.example/' }, schedule: DAILY }, '/webhook/url'],
    [{ webhook: { ...WEBHOOK, headers: { 'a b': 'c' } }, schedule: DAILY }, '/webhook/headers'],
    [{ webhook: { ...WEBHOOK, retry: { attempts: 4 } }, schedule: DAILY }, '/webhook/retry/attempts'],
    [[], ''],
  ] as const) {
    const { status, code, details } = await errorOf(await client.post(PATH, body));
    const paths = (details as { path: string }[]).map((fault) => fault.path);
    assert.deepEqual([status, code, paths], [400, 'invalid_request', [path]], JSON.stringify(body));
  }
});

test('faults of the webhook come before those of the schedule', async () => {
  const client = clientOf(realWorld());
  const [slow, unnamed] = [{ timeoutMs: 5 }, { headers: { 'a b': 'c' } }];
  for (const [webhook, schedule, paths] of [
    [slow, {}, ['/webhook/timeoutMs', '/schedule/type']],
    [slow, undefined, ['/webhook/timeoutMs', '/schedule']],
    [slow, { ...DAILY, timeOfDay: '24:00' }, ['/webhook/timeoutMs', '/schedule/timeOfDay']],
    [slow, DAILY, ['/webhook/timeoutMs']],
    // What no schema can say.
    [unnamed, { ...DAILY, timezone: 'Mars/Phobos' }, ['/webhook/headers', '/schedule/timezone']],
  ] as const) {
    const body = { webhook: { ...WEBHOOK, ...webhook }, schedule };
    const { status, code, details } = await errorOf(await client.post(PATH, body));
    const found = (details as { path: string }[]).map(({ path }) => path);
    assert.deepEqual([status, code, found], [400, 'invalid_request', paths], JSON.stringify(body));
  }
});

test('a warning names its subject by the path in this answer, too', async () => {
  const webhook = { ...WEBHOOK, headers: { via: 'x' } };
  const answer = await clientOf(realWorld()).post(PATH, { webhook, schedule: DAILY });
  const { warnings, preview } = (await answer.json()) as Answer & {
    warnings: { code: string; message: string }[];
  };
  const { message = '' } = warnings.find(({ code }) => code === 'headers_stripped') ?? {};
  const named = message.match(/[a-z]+[A-Z.]\w+/g) ?? [];
  assert.deepEqual(named, ['strippedHeaders']);
  assert.deepEqual(preview.webhook.strippedHeaders, ['via']);
});

test('invalid_schedule: anything wrong inside the schedule, each fault by its place', async () => {
  const client = clientOf(realWorld());
  const at = (...names: string[]) => names.map((name) => `/schedule${name === '' ? '' : `/${name}`}`);
  for (const [schedule, paths] of [
    [undefined, at('')],
    [null, at('')],
    ['daily', at('')],
    [[], at('')],
    [{}, at('type')],
    [{ ...DAILY, type: 'monthly' }, at('type')],
    [{ ...DAILY, type: 'weekly' }, at('daysOfWeek')],
    [{ ...DAILY, type: 'weekly', daysOfWeek: [] }, at('daysOfWeek')],
    [{ ...DAILY, type: 'weekly', daysOfWeek: ['Monday'] }, at('daysOfWeek/0')],
    [{ ...DAILY, daysOfWeek: ['monday'] }, at('daysOfWeek')],
    [{ type: 'interval', everyMinutes: 0, startAt: ONCE.runAt }, at('everyMinutes')],
    [{ type: 'interval', everyMinutes: 10_081, startAt: ONCE.runAt }, at('everyMinutes')],
    [{ type: 'interval', everyMinutes: 5 }, at('startAt')],
    [{ type: 'interval', everyMinutes: 5, startAt: '2099-01-01' }, at('startAt')],
    [{ ...DAILY, type: 'Daily' }, at('type')],
    [{ type: 'daily' }, at('timeOfDay', 'timezone')],
    [{ type: 'once' }, at('runAt')],
    [{ ...DAILY, runAt: ONCE.runAt }, at('runAt')],
    [{ ...ONCE, timezone: 'UTC' }, at('timezone')],
    [{ ...ONCE, timeOfDay: '09:00' }, at('timeOfDay')],
    [{ ...DAILY, timeOfDay: '24:00' }, at('timeOfDay')],
    [{ ...DAILY, timeOfDay: '9:00' }, at('timeOfDay')],
    [{ ...DAILY, timeOfDay: '09:60' }, at('timeOfDay')],
    [{ ...DAILY, timeOfDay: '09:00:00' }, at('timeOfDay')],
    [{ ...DAILY, timeOfDay: '09:00\n' }, at('timeOfDay')],
    [{ ...DAILY, timeOfDay: 900 }, at('timeOfDay')],
    [{ ...DAILY, timezone: '+02:00' }, at('timezone')],
    [{ ...DAILY, timezone: 'Mars/Phobos' }, at('timezone')],
    [{ ...DAILY, timezone: '' }, at('timezone')],
    [{ ...DAILY, timezone: 'A'.repeat(65) }, at('timezone')],
    [{ ...ONCE, runAt: '2099-02-30T00:00:00Z' }, at('runAt')],
    [{ ...ONCE, runAt: '2099-01-01T00:00:00' }, at('runAt')],
    [{ ...ONCE, runAt: '2020-01-01T00:00:00Z' }, at('runAt')],
    [{ ...ONCE, runAt: 4070908800000 }, at('runAt')],
  ] as const) {
    const { status, code, details } = await errorOf(await client.post(PATH, { webhook: WEBHOOK, schedule }));
    const found = (details as { path: string }[]).map((fault) => fault.path);
    assert.deepEqual(
      [status, code, found],
      [400, 'invalid_schedule', paths],
      JSON.stringify(schedule)?.slice(0, 90),
    );
  }
});

test('where schedules are sold, the preview takes what the purchase takes, and nothing else', async () => {
  const client = clientOf(fakeWorld({ settings: { schedules: { horizonDays: 90 } } }));
  const bought = { webhook: WEBHOOK, schedule: DAILY, catchUpSeconds: 60 };
  assert.equal((await client.post(PATH, bought)).status, 200);
  const keyed = { ...bought, webhook: { ...WEBHOOK, idempotencyKey: 'k' } };
  const { status, details } = await errorOf(await client.post(PATH, keyed));
  const [fault] = details as { path: string }[];
  assert.deepEqual([status, fault?.path], [400, '/webhook/idempotencyKey']);
});

test('where schedules are sold, the published example is taken, and no key is missed that a run cannot have', async () => {
  const client = clientOf(realWorld({ settings: { schedules: { horizonDays: 90 } } }));
  const { paths } = (await client.get('/openapi.json')).body as {
    paths: Record<string, { post: { requestBody: { content: Record<string, { example: unknown }> } } }>;
  };
  const { example } = paths[PATH]?.post.requestBody.content['application/json'] ?? {};
  assert.ok(example);
  assert.ok(!(await warned(client, example)).includes('idempotency_key_missing'));
  const missed = await warned(clientOf(realWorld()), { webhook: WEBHOOK, schedule: DAILY });
  assert.ok(missed.includes('idempotency_key_missing'));
});

/** The codes of the warnings of a preview. */
async function warned(client: ReturnType<typeof clientOf>, order: unknown): Promise<readonly string[]> {
  const answer = await client.post(PATH, order);
  assert.equal(answer.status, 200);
  const { warnings } = (await answer.json()) as { readonly warnings: readonly { readonly code: string }[] };
  return warnings.map(({ code }) => code);
}

test('a refusal of the use case is answered as such; calls are counted by client address, by a rule of their own', async () => {
  const denied = refused('invalid_schedule', 'no', { details: [] });
  const client = clientOf(fakeWorld({ previewSchedule: async () => denied }));
  const body = { webhook: WEBHOOK, schedule: DAILY };
  assert.equal((await errorOf(await client.post(PATH, body))).code, 'invalid_schedule');
  const quota = countingQuota(2);
  const limited = clientOf(fakeWorld({ quota }));
  const statuses = [];
  for (let i = 0; i < 3; i++) statuses.push((await limited.post(PATH, body)).status);
  assert.deepEqual(statuses, [200, 200, 429]);
  assert.deepEqual([...quota.taken], [['client-schedule-preview 198.51.100.7', 3]]);
});

test('the capabilities: served with an entity tag, and each example is taken by the route', async () => {
  const it = realWorld();
  const client = clientOf(it);
  const { status, headers, body } = await client.get('/api/schedules/capabilities');
  assert.equal(status, 200);
  const { id, endpoint, examples, requestSchema, planned } = body as {
    id: string;
    endpoint: unknown;
    examples: { request: SchedulePreviewRequest }[];
    requestSchema: unknown;
    planned: { method: string; path: string; active: boolean };
  };
  assert.deepEqual([id, endpoint], ['scheduled.webhook', { method: 'POST', path: PATH, paid: false }]);
  assert.deepEqual(
    examples.map(({ request }) => request.schedule.type),
    ['once', 'daily', 'weekly', 'interval'],
  );
  for (const [at, { request }] of examples.entries()) {
    const answer = (await (await client.post(PATH, request)).json()) as Answer;
    assert.deepEqual([answer.ok, answer.preview.nextRuns.length], [true, at === 0 ? 1 : 3]);
  }
  assert.deepEqual(requestSchema, JSON.parse(JSON.stringify(portableSchema(SchedulePreviewRequest))));
  // Planned, and not there.
  assert.equal(planned.active, false);
  assert.equal((await client.call(planned.path, { method: planned.method })).status, 404);
  const again = await client.call('/api/schedules/capabilities', {
    headers: { 'if-none-match': headers.get('etag') ?? '' },
  });
  assert.equal(again.status, 304);
});
