// A process that is late: what it records and deletes of a run that another process, or its own call, executes meanwhile.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { leaseMs } from '#src/domain/job/commands.ts';
import { LIMITS } from '#src/domain/limits.ts';
import { RUN_TIMES } from '#src/domain/schedule/limits.ts';
import { dies, gate, type Interception } from '#test/support/log/fakes-log.ts';
import { letPass, quiet } from '#test/support/world/fakes.ts';
import {
  buyerWith,
  commonSchedules,
  create,
  dueOf,
  every10,
  FREE,
  freeWorld,
  type ScheduleWorld,
  scheduleWorld,
  skips,
} from '#test/support/world/fakes-schedules.ts';

const at = (it: ScheduleWorld, ms: number) => it.clock.advance(ms - it.clock.now());
const paymentKeys = (it: ScheduleWorld) =>
  [...it.common.vault.keys.keys()].filter((name) => name.startsWith('job_')).length;

/** Stored, and acknowledged when it is opened. */
function heldAnswer() {
  const held = Promise.withResolvers<void>();
  const interception: Interception = async (store) => {
    const answer = await store();
    await held.promise;
    return answer;
  };
  return { interception, open: () => held.resolve() };
}

/** Two processes; the first has won the run and does not know it yet. */
async function wonLate(buyer: 'paid' | 'free') {
  const common = commonSchedules();
  const open = buyer === 'free' ? freeWorld : scheduleWorld;
  const [a, b] = [open(common), open(common)];
  const once = every10({ schedule: { type: 'once', runAt: new Date(dueOf(1)).toISOString() } });
  await create(a, buyer === 'free' ? FREE : buyerWith(a, '1'), once);
  for (const it of [a, b]) at(it, dueOf(1));
  const held = heldAnswer();
  common.log.onNext('RunStarted', held.interception);
  const winning = a.runner.pass();
  await quiet();
  const continues = async () => {
    held.open();
    await letPass(a.clock, winning);
    await letPass(a.clock, a.runner.settled());
  };
  return { common, a, b, continues };
}

describe('the winner of a run continues when another process has taken the run over', () => {
  for (const buyer of ['paid', 'free'] as const)
    test(`${buyer}, and has executed it: the run is not skipped`, async () => {
      const { a, b, continues } = await wonLate(buyer);
      for (let n = 0; n < 4; n++) {
        await b.pass();
        b.clock.advance(20_000);
      }
      assert.deepEqual([b.outbound.sent.length, paymentKeys(b)], [1, 0]);
      at(a, b.clock.now());
      await continues();
      assert.deepEqual([skips(a), a.outbound.sent.length, b.outbound.sent.length], [[], 0, 1]);
    });

  test('and settles its payment: the run is not skipped while it may still start there', async () => {
    const { common, a, b, continues } = await wonLate('paid');
    await b.pass();
    at(b, dueOf(1) + 329_000);
    const settled = gate();
    common.log.onNext('PaymentSettled', settled.frozen);
    await b.runner.pass();
    await settled.reached;
    at(a, dueOf(1) + 331_000);
    await continues();
    assert.deepEqual(skips(a), []);
    settled.open();
    await letPass(b.clock, b.runner.settled());
    assert.deepEqual([skips(a), b.outbound.sent.length, common.payments.ledger.size], [[], 1, 1]);
  });
});

test('a run is ended when a start that was begun in time is over or sends nothing, with the clocks that are tolerated', () => {
  const lastLeaseMs = leaseMs(LIMITS.retryAttempts.max, LIMITS.timeoutMs.max);
  const { startGraceMs, endGraceMs, clockToleranceMs } = RUN_TIMES;
  assert.ok(startGraceMs + lastLeaseMs + 2 * clockToleranceMs < endGraceMs);
});

test('a free run that cannot be executed is skipped, with the reason, when it can be started nowhere any more', async () => {
  const it = freeWorld();
  await create(it, FREE);
  it.common.vault.keys.clear();
  at(it, dueOf(1));
  await it.pass();
  at(it, dueOf(1) + 419_000);
  await it.pass();
  assert.deepEqual(skips(it), []);
  at(it, dueOf(1) + 421_000);
  await it.pass();
  assert.deepEqual(skips(it), ['1 lost']);
});

test('a run that a process with a wrong clock has started is taken over when it is due', async () => {
  const common = commonSchedules();
  const [a, b] = [scheduleWorld(common), scheduleWorld(common)];
  await create(a);
  at(a, dueOf(1));
  at(b, dueOf(1) - 10_000);
  common.log.onNext('PaymentReserved', dies('before'));
  await a.pass();
  Object.assign(b.deps, { exclusive: true });
  await b.pass();
  assert.deepEqual([common.payments.calls.settle, b.outbound.sent.length], [0, 0]);
  at(b, dueOf(1));
  await b.pass();
  assert.deepEqual([common.payments.calls.settle, b.outbound.sent.length], [1, 1]);
});

test('the key of a payment is deleted within ten minutes when its job ends behind a slow append, whatever the rows show by then', async () => {
  const it = scheduleWorld();
  await create(it);
  at(it, dueOf(1));
  const slow: Interception = async (store) => {
    const answer = await store();
    await it.clock.sleep(3000);
    return answer;
  };
  it.common.log.onNext('JobStarted', slow);
  await it.pass();
  assert.deepEqual([it.outbound.sent.length, paymentKeys(it)], [0, 1]);
  Object.assign(it.deps, { candidates: async () => [] });
  it.clock.advance(6000);
  await quiet();
  it.clock.advance(600_000);
  await it.pass();
  assert.deepEqual([it.outbound.sent.length, paymentKeys(it)], [1, 0]);
});
