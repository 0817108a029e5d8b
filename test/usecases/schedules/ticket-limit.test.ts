// How many runs one payer, or one client address where calls are free, may have that are not over: with two processes at once.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { STREAM } from '#src/domain/events.ts';
import { isRefused } from '#src/domain/refusal.ts';
import { SCHEDULE_LIMITS } from '#src/domain/schedule/limits.ts';
import { load, PAYMENT } from '#src/usecases/process/stream.ts';
import { type Bought, createSchedule, fundRun } from '#src/usecases/schedules/buy-run.ts';
import { cancelSchedule } from '#src/usecases/schedules/end-run.ts';
import { T0 } from '#test/support/given/given-events.ts';
import { letPass } from '#test/support/world/fakes.ts';
import {
  buyerWith,
  commonSchedules,
  create,
  dueOf,
  every10,
  FREE,
  freeWorld,
  idOf,
  type ScheduleCommon,
  scheduleWorld,
} from '#test/support/world/fakes-schedules.ts';

const holderIn = ({ log }: ScheduleCommon) =>
  String(log.events.find(({ type }) => type === 'RunFunded')?.data.holder);
const fundedIn = ({ log }: ScheduleCommon) => log.events.filter(({ type }) => type === 'RunFunded').length;

test('where calls are free, 100 purchases at once by one client address on two processes: 10 runs', async () => {
  const common = commonSchedules();
  const worlds = [freeWorld(common), freeWorld(common)] as const;
  const bought = await Promise.all(
    Array.from({ length: 100 }, (_, n) => {
      const it = worlds[n % 2 === 0 ? 0 : 1];
      return letPass(it.clock, createSchedule(it.deps, every10(), FREE));
    }),
  );
  const refused = bought.filter(isRefused);
  assert.deepEqual([...new Set(refused.map((one) => one.refused))], ['too_many_in_flight']);
  assert.deepEqual([bought.length - refused.length, fundedIn(common)], [10, 10]);
  const other = await letPass(
    worlds[0].clock,
    createSchedule(worlds[0].deps, every10(), { ...FREE, client: 'another' }),
  );
  assert.ok(!isRefused(other));
});

test('a run that is over makes room for another, executed, skipped or cancelled', async () => {
  const it = freeWorld();
  const bought: Bought[] = [];
  for (let n = 0; n < SCHEDULE_LIMITS.ticketsPerClient.max; n++) bought.push(await create(it, FREE));
  const more = () => letPass(it.clock, createSchedule(it.deps, every10(), FREE));
  const isFull = async () => isRefused(await more());
  assert.equal(await isFull(), true);
  const [first] = bought;
  assert.ok(first);
  await cancelSchedule(it.deps, idOf(first), first.cancelToken ?? '');
  assert.deepEqual([await isFull(), await isFull()], [false, true]);
  it.clock.advance(dueOf(1) - T0 + 1000);
  for (let n = 0; n < 3; n++) await it.pass();
  assert.equal(it.common.vault.keys.size, SCHEDULE_LIMITS.ticketsPerClient.max, 'keys of the requests');
  assert.equal(await isFull(), false);
});

test('the last runs of a payer, bought at once on two processes: one is bound, the other payments are free again', async () => {
  const common = commonSchedules();
  const worlds = [scheduleWorld(common), scheduleWorld(common)] as const;
  const [it, other] = worlds;
  const first = await create(it);
  const { max } = SCHEDULE_LIMITS.ticketsPerPayer;
  const seat = { holder: holderIn(common), max, amount: 0n };
  for (let n = 0; n < max - 2; n++)
    await common.vault.put({ name: `held-${n}`, text: '', untilMs: T0 + 1e9, seat });
  const digits = ['2', '3', '4', '5'];
  const got = await Promise.all(
    digits.map((digit, n) => {
      const { clock, deps } = n % 2 === 0 ? it : other;
      return letPass(clock, fundRun(deps, idOf(first), buyerWith(it, digit)));
    }),
  );
  assert.equal(got.filter((one) => !isRefused(one)).length, 1);
  assert.equal((await common.vault.held(seat.holder)).length, max);
  assert.equal(fundedIn(common), 2);
  const states = new Set<string>();
  for (const [n, digit] of digits.entries()) {
    const { presented } = buyerWith(it, digit);
    const { state } = await load(common, PAYMENT, STREAM.payment(presented?.hash ?? ''));
    states.add(isRefused(got[n] ?? {}) ? state.status : 'bought');
  }
  assert.ok(!states.has('deferred'), [...states].join());
  const refusedAt = got.findIndex(isRefused);
  await common.vault.remove(['held-0']);
  const again = await letPass(
    it.clock,
    fundRun(it.deps, idOf(first), buyerWith(it, digits[refusedAt] ?? '')),
  );
  assert.ok(!isRefused(again) && again.run.run === 3);
});
