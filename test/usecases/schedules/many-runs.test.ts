// Many runs at once: how many a process has in progress, and that calls which are made meanwhile are served.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isRefused, type Refused } from '#src/domain/refusal.ts';
import { executeWebhook } from '#src/usecases/execution/execute-webhook.ts';
import { inFlightSlots } from '#src/usecases/execution/process-limits.ts';
import { type Bought, createSchedule, fundRun } from '#src/usecases/schedules/buy-run.ts';
import { callInput } from '#test/support/given/given-call.ts';
import { T0 } from '#test/support/given/given-events.ts';
import { letPass, quiet, succeeding } from '#test/support/world/fakes.ts';
import {
  buyerWith,
  commonSchedules,
  create,
  dueOf,
  every10,
  FREE,
  freeWorld,
  idOf,
  type ScheduleWorld,
  scheduleWorld,
} from '#test/support/world/fakes-schedules.ts';

test('150 runs are due at once: 128 are in progress, a call that is made meanwhile is served, then the others run', async () => {
  const it = freeWorld();
  Object.assign(it.deps, { slots: inFlightSlots(512) });
  for (let n = 0; n < 150; n++) await create(it, { ...FREE, client: `client ${n}` });
  const held = Promise.withResolvers<void>();
  it.outbound.script(
    ...Array.from({ length: 128 }, () => async () => {
      await held.promise;
      return succeeding();
    }),
  );
  it.clock.advance(dueOf(1) - T0 + 1000);
  await it.runner.pass();
  for (let n = 0; n < 2000 && it.outbound.sent.length < 128; n++) await quiet();
  await it.runner.pass();
  assert.equal(it.outbound.sent.length, 128);
  const input = { ...callInput({ presented: null, key: 'now' }), payer: 'demo' };
  assert.ok(!isRefused(await letPass(it.clock, executeWebhook(it.deps, input))));
  assert.equal(it.outbound.sent.length, 129);
  held.resolve();
  await letPass(it.clock, it.runner.settled());
  await it.pass();
  assert.equal(it.outbound.sent.length, 151);
});

test('while a call is in flight, runs start one after another, the closer the later they are; after it, all at once', async () => {
  const it = freeWorld();
  Object.assign(it.deps, { slots: inFlightSlots(512) });
  for (let n = 0; n < 40; n++) await create(it, { ...FREE, client: `client ${n}` });
  const held = Promise.withResolvers<void>();
  it.outbound.script(async () => {
    await held.promise;
    return succeeding();
  });
  const input = { ...callInput({ presented: null, key: 'now' }), payer: 'demo' };
  const call = executeWebhook(it.deps, input);
  for (let n = 0; n < 2000 && it.outbound.sent.length < 1; n++) await quiet();
  assert.equal(it.outbound.sent.length, 1);
  /** Runs that start within one second, looked at each 10 ms. */
  async function started(): Promise<number> {
    const before = it.outbound.sent.length;
    for (let n = 0; n < 100; n++) {
      it.clock.advance(10);
      await it.pass();
    }
    return it.outbound.sent.length - before;
  }
  it.clock.advance(dueOf(1) - it.clock.now());
  assert.equal(await started(), 7);
  it.clock.advance(20_000);
  assert.equal(await started(), 13);
  held.resolve();
  await letPass(it.clock, call);
  await it.pass();
  assert.equal(it.outbound.sent.length, 41);
});

test('9 runs of one buyer are due before one of another: 4 of them are in progress, and that one is executed meanwhile', async () => {
  const it = freeWorld();
  for (let n = 0; n < 9; n++) await create(it, { ...FREE, client: 'many' });
  await create(it, { ...FREE, client: 'one' });
  const held = Promise.withResolvers<void>();
  it.outbound.script(
    ...Array.from({ length: 4 }, () => async () => {
      await held.promise;
      return succeeding();
    }),
  );
  it.clock.advance(dueOf(1) - T0 + 1000);
  await it.runner.pass();
  for (let n = 0; n < 2000 && it.outbound.sent.length < 5; n++) await quiet();
  assert.equal(it.outbound.sent.length, 5);
  await it.runner.pass();
  assert.equal(it.outbound.sent.length, 5);
  held.resolve();
  await letPass(it.clock, it.runner.settled());
  for (let n = 0; n < 3; n++) await it.pass();
  assert.equal(it.outbound.sent.length, 10);
});

test('100 purchases at once with one payment on two processes: one schedule, one run, one token', async () => {
  const common = commonSchedules();
  const worlds = [scheduleWorld(common), scheduleWorld(common)] as const;
  const of = (n: number) => worlds[n % 2 === 0 ? 0 : 1];
  /** What was bought; the others are refused for the calls in flight, and get the same answer when they repeat theirs. */
  async function each(buy: (it: ScheduleWorld) => Promise<Bought | Refused>): Promise<readonly Bought[]> {
    const at = Array.from({ length: 100 }, (_, n) => of(n));
    const answers = await Promise.all(at.map((it) => letPass(it.clock, buy(it))));
    const bought: Bought[] = [];
    for (const [n, answer] of answers.entries()) {
      if (isRefused(answer))
        assert.ok(['too_many_in_flight', 'idempotency_in_progress'].includes(answer.refused), answer.refused);
      const again = isRefused(answer) ? await letPass(of(n).clock, buy(of(n))) : answer;
      assert.ok(!isRefused(again));
      bought.push(again);
    }
    return bought;
  }
  const bought = await each((it) => createSchedule(it.deps, every10(), buyerWith(it, '1')));
  const [first] = bought;
  assert.ok(first);
  assert.deepEqual([...new Set(bought.map(idOf))], [idOf(first)]);
  assert.deepEqual([...new Set(bought.map(({ cancelToken }) => cancelToken))], [first.cancelToken]);
  const more = await each((it) => fundRun(it.deps, idOf(first), buyerWith(it, '2')));
  assert.deepEqual([...new Set(more.map(({ run }) => run.run))], [2]);
  const funded = common.log.events.filter(({ type }) => type === 'RunFunded');
  assert.deepEqual(
    funded.map(({ data }) => data.run),
    [1, 2],
  );
  assert.equal(common.vault.keys.size, 3);
});
