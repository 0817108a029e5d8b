// The routes of paid schedules over their real use cases: any body, id, token and payment. Every answer fits the description.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { isRefused } from '#src/domain/refusal.ts';
import { upcomingRuns } from '#src/domain/schedule/commands.ts';
import type { SchedulesDeps } from '#src/http/routes/schedules.ts';
import { VaultUnavailable } from '#src/ports/vault.ts';
import { load, SCHEDULE } from '#src/usecases/process/stream.ts';
import { createSchedule, fundRun } from '#src/usecases/schedules/buy-run.ts';
import { cancelSchedule } from '#src/usecases/schedules/end-run.ts';
import { quoteRun, quoteSchedule, timeOf } from '#src/usecases/schedules/quote.ts';
import { fakeProtocol } from '#test/support/chain/fakes-protocol.ts';
import { SCHEDULE_ID, T0 } from '#test/support/given/given-events.ts';
import { rounds, runs } from '#test/support/given/property-runs.ts';
import { clientOf, errorOf } from '#test/support/process/http-client.ts';
import {
  create,
  FREE,
  freeWorld,
  idOf,
  type ScheduleWorld,
  scheduleWorld,
} from '#test/support/world/fakes-schedules.ts';
import { fakeWorld } from '#test/support/world/http-deps.ts';

const word = fc.string({ unit: 'binary', maxLength: 20 });
const value = fc.jsonValue({ maxDepth: 2 });
const future = fc.integer({ min: 0, max: 40 * 86_400 }).map((s) => new Date(T0 + s * 1000).toISOString());
const zone = fc.oneof(fc.constantFrom('Europe/Berlin', 'utc', '+02:00', 'Mars/Phobos'), word);
const schedule = fc.oneof(
  { weight: 3, arbitrary: fc.record({ type: fc.constant('once'), runAt: fc.oneof(future, word) }) },
  {
    weight: 3,
    arbitrary: fc.record({
      type: fc.constant('interval'),
      everyMinutes: fc.oneof(fc.integer({ min: 0, max: 10_081 }), value),
      startAt: future,
    }),
  },
  fc.record({
    type: fc.constantFrom('daily', 'weekly'),
    daysOfWeek: fc.oneof(fc.array(fc.constantFrom('monday', 'sunday', 'Sonntag')), value),
    timeOfDay: fc.stringMatching(/^[0-2][0-9]:[0-5][0-9]$/),
    timezone: zone,
  }),
  value,
);
const webhook = fc.oneof(
  { weight: 4, arbitrary: fc.record({ url: fc.constantFrom('https://a.example/', 'https://b.example/x') }) },
  fc.record({ url: fc.oneof(word, fc.constantFrom('http://a.example', 'https://127.0.0.1')) }),
  fc.record({ url: fc.constant('https://a.example/'), idempotencyKey: word }),
  value,
);
const order = fc.oneof(
  { weight: 6, arbitrary: fc.record({ webhook, schedule }) },
  fc.record({ webhook, schedule, catchUpSeconds: fc.oneof(fc.integer({ min: -1, max: 3601 }), value) }),
  value,
);
const type = fc.oneof(
  { weight: 8, arbitrary: fc.constant('application/json') },
  fc.constantFrom('text/plain', ';'),
);

type Call = readonly [method: string, path: string, body: string | null, headers: Record<string, string>];

/** `known`: schedules that were bought, with their tokens. */
const calls = (known: readonly (readonly [string, string])[], payment: fc.Arbitrary<string>) => {
  const id = fc.oneof(
    fc.nat().map((n) => known[n % Math.max(1, known.length)]?.[0] ?? SCHEDULE_ID),
    fc.constantFrom(SCHEDULE_ID, 'sch_x', '__proto__', '%E0%A4%A'),
  );
  const paying = payment.map(
    (header): Record<string, string> => (header === '' ? {} : { 'payment-signature': header }),
  );
  const bearer = (of: string, isIts: boolean): Record<string, string> => {
    const token = isIts ? known.find(([one]) => one === of)?.[1] : 'x'.repeat(43);
    return { authorization: `Bearer ${token ?? ''}` };
  };
  return fc.oneof(
    {
      weight: 5,
      arbitrary: fc
        .tuple(order, type, paying)
        .map(
          ([body, as, paid]): Call => [
            'POST',
            '/api/schedules/webhook',
            JSON.stringify(body),
            { 'content-type': as, ...paid },
          ],
        ),
    },
    {
      weight: 3,
      arbitrary: fc
        .tuple(id, paying, fc.boolean())
        .map(
          ([of, paid, isIts]): Call => [
            'POST',
            `/api/schedules/${of}/runs`,
            '{}',
            { ...paid, ...bearer(of, isIts) },
          ],
        ),
    },
    id.map((of): Call => ['GET', `/api/schedules/${of}`, null, {}]),
    fc.tuple(id, fc.boolean()).map(([of, isIts]): Call => {
      return ['DELETE', `/api/schedules/${of}`, null, bearer(of, isIts)];
    }),
  );
};

const unavailable = new VaultUnavailable(new Error('no disk'));

/** The real use cases. `known`: gets each schedule that is bought, with its token. */
const schedulesOver = (
  it: ScheduleWorld,
  mode: 'demo' | 'x402',
  known: (readonly [string, string])[],
): SchedulesDeps => ({
  progress: { reachedHead: async () => true },
  quoteSchedule: async (request) => quoteSchedule(it.deps, request),
  quoteRun: (row) => quoteRun(it.deps, row),
  async create(request, buyer) {
    const client = `${Math.floor(known.length / 10)}`;
    const bought = await createSchedule(
      it.deps,
      request,
      mode === 'demo' ? { ...buyer, ...FREE, client } : buyer,
    );
    if (!isRefused(bought) && bought.cancelToken !== null)
      known.push([bought.schedule.defined.scheduleId, bought.cancelToken]);
    return bought;
  },
  fund: (id, buyer) => fundRun(it.deps, id, buyer),
  cancel: (id, token) => cancelSchedule(it.deps, id, token),
  upcoming: (of) => upcomingRuns(of, timeOf(it.deps), 3),
  async find(id) {
    const { state } = await load(it, SCHEDULE, id);
    if (state.status === 'absent') return null;
    const { defined, status, next } = state;
    const row = { ...defined, status, nextRun: next?.run ?? null, nextDueAt: next?.dueAt ?? null };
    return { ...row, runs: [], open: state.tickets.length };
  },
});

for (const mode of ['demo', 'x402'] as const)
  test(`any call, ${mode}: never 500, and every answer fits the description`, async () => {
    const it = mode === 'demo' ? freeWorld() : scheduleWorld();
    const known: (readonly [string, string])[] = [];
    const schedules = schedulesOver(it, mode, known);
    const payments = mode === 'demo' ? null : fakeProtocol();
    const client = clientOf(fakeWorld({ schedules, payments, settings: { mode } }));
    const seen = new Map<string, number>();
    const payment = fc.constantFrom('paid', '', '¥¥not a payment');
    const numRuns = runs(600);
    const hourly = { type: 'interval', everyMinutes: 60, startAt: new Date(T0 + 60_000).toISOString() };
    const first = { webhook: { url: 'https://a.example/' }, schedule: hourly };
    assert.equal(
      (await client.post('/api/schedules/webhook', first, { 'payment-signature': 'paid' })).status,
      201,
    );
    // With one payment there is one schedule: it is not cancelled.
    if (mode === 'x402') known.splice(0, 1, [known[0]?.[0] ?? '', 'x'.repeat(43)]);
    const runsOf = 'POST /api/schedules/{id}/runs';
    const expected = [
      'POST /api/schedules/webhook 400 invalid_request',
      'POST /api/schedules/webhook 400 invalid_schedule',
      'POST /api/schedules/webhook 415 unsupported_media_type',
      `${runsOf} 404 schedule_not_found`,
      'GET /api/schedules/{id} 404 schedule_not_found',
      'DELETE /api/schedules/{id} 404 schedule_not_found',
      ...(mode === 'x402'
        ? [
            'POST /api/schedules/webhook 402 ',
            `${runsOf} 402 `,
            'POST /api/schedules/webhook 409 payment_reused',
          ]
        : [
            'POST /api/schedules/webhook 201 ',
            `${runsOf} 201 `,
            `${runsOf} 409 schedule_ended`,
            'DELETE /api/schedules/{id} 200 ',
          ]),
    ];
    const missing = () => expected.filter((key) => !seen.has(key));
    await rounds(missing, () =>
      fc.assert(
        fc.asyncProperty(fc.gen(), async (draw) => {
          const [method, path, body, headers] = draw(calls, [...known], payment);
          const response = await client.call(path, { method, headers, ...(body === null ? {} : { body }) });
          const place = `${method} ${path.replace(/(schedules\/)(?!webhook)[^/]+/, '$1{id}')}`;
          const { code } =
            response.status >= 400 && response.status !== 402 ? await errorOf(response) : { code: '' };
          const key = `${place} ${response.status} ${code}`;
          seen.set(key, (seen.get(key) ?? 0) + 1);
          assert.ok(response.status < 500, key);
        }),
        { numRuns },
      ),
    );
    assert.deepEqual(missing(), [], [...seen.keys()].sort().join(' | '));
  });

test('the event log or the vault is unavailable: 503 of the description, with the code of what failed', async () => {
  const hourly = { type: 'interval', everyMinutes: 60, startAt: new Date(T0 + 60_000).toISOString() };
  async function codesWith(fail: (it: ScheduleWorld) => void): Promise<string[]> {
    const it = freeWorld();
    const bought = await create(it, FREE);
    const schedules = { ...schedulesOver(it, 'demo', []), find: () => Promise.reject(unavailable) };
    const client = clientOf(fakeWorld({ schedules }));
    const one = `/api/schedules/${idOf(bought)}`;
    const authorization = `Bearer ${bought.cancelToken}`;
    const codes: string[] = [];
    fail(it);
    for (const response of [
      await client.post('/api/schedules/webhook', {
        webhook: { url: 'https://a.example/' },
        schedule: hourly,
      }),
      await client.post(`${one}/runs`, {}, { authorization }),
      await client.call(one),
      await client.call(one, { method: 'DELETE', headers: { authorization } }),
    ]) {
      const { status, code } = await errorOf(response);
      assert.equal(status, 503);
      codes.push(code);
    }
    return codes;
  }
  const [log, keys] = ['event_log_unavailable', 'schedules_unavailable'];
  const failing = () => Promise.reject(unavailable);
  const failed = { put: failing, take: failing, held: failing, remove: failing };
  const isVaultGone = ({ deps, common }: ScheduleWorld) =>
    Object.assign(deps, { vault: { ...common.vault, ...failed } });
  assert.deepEqual(await codesWith(isVaultGone), [keys, keys, keys, keys]);
  assert.deepEqual(await codesWith((it) => it.log.setAway(true)), [log, log, keys, log]);
});
