import assert from 'node:assert/strict';
import { test } from 'node:test';
import { orderlyEnding, untilIdle } from '#src/app/shutdown.ts';
import { collectingLogger, letPass, manualClock, quiet } from '#test/support/world/fakes.ts';

const never = () => new Promise<void>(() => undefined);

function bench() {
  const clock = manualClock();
  const taken: string[] = [];
  const ending = orderlyEnding(clock);
  const step = (name: string, work: () => Promise<void> = async () => undefined) =>
    ending.push(async () => {
      taken.push(name);
      await work();
    });
  return { clock, ending, taken, step };
}

test('steps run once, the last registered first, and a failing one does not prevent the others', async () => {
  const { ending, taken, step, clock } = bench();
  step('log');
  step('rows', async () => {
    throw new Error('rows');
  });
  step('server');
  const [first, second] = [ending.end(), ending.end()];
  await assert.rejects(first, /rows/);
  await assert.rejects(second, /rows/);
  assert.deepEqual(taken, ['server', 'rows', 'log']);
  assert.equal(clock.advanceToNext(), false, 'no timer is left');
});

test('all steps together take 120 s at most, and the waits among them leave time to close the rest', async () => {
  const { clock, ending, taken, step } = bench();
  assert.equal(ending.left(), 112_000);
  step('log', never);
  step('executions', () => clock.sleep(ending.left()));
  step('server', () => clock.sleep(ending.left() / 2));
  await letPass(clock, ending.end());
  assert.deepEqual(taken, ['server', 'executions', 'log']);
  assert.equal(clock.monotonic(), 120_000);
  assert.equal(ending.left(), 0);
});

/** `answers`: whether the log answers at a time, ms. */
function executions(inFlight: number, answers: (at: number) => boolean) {
  const clock = manualClock();
  const logger = collectingLogger();
  const state = { inFlight };
  const log = { health: async () => ({ ok: answers(clock.monotonic()) }) };
  const deps = { clock, logger, log, slots: { inFlight: () => state.inFlight } };
  return { ...deps, state, wait: (left: number) => letPass(clock, untilIdle(deps, left)) };
}

test('nothing in flight is not waited for, whatever the log says', async () => {
  const it = executions(0, () => false);
  await it.wait(100_000);
  assert.deepEqual([it.clock.monotonic(), it.logger.lines.length], [0, 0]);
});

test('executions in flight are waited for until the last has ended', async () => {
  const it = executions(2, () => true);
  let over = false;
  const waiting = untilIdle(it, 100_000).then(() => {
    over = true;
  });
  for (let n = 0; n < 500; n++) {
    await quiet();
    it.clock.advanceToNext();
  }
  await quiet();
  assert.equal(over, false);
  it.state.inFlight = 0;
  it.clock.advanceToNext();
  await waiting;
  assert.equal(it.logger.lines.length, 0);
});

test('executions that do not end are given up when the time is over, and that is said', async () => {
  const it = executions(1, () => true);
  await it.wait(60_000);
  assert.equal(it.clock.monotonic(), 60_000);
  assert.deepEqual(
    it.logger.lines.map(({ level, fields }) => [level, fields]),
    [['warn', { inFlight: 1 }]],
  );
});

test('a log that does not answer for 10 s on end is given up; one that comes back before is not', async () => {
  const away = executions(1, () => false);
  await away.wait(100_000);
  assert.equal(away.clock.monotonic(), 10_000);
  const flapping = executions(1, (at) => at % 9000 < 1000);
  await flapping.wait(50_000);
  assert.equal(flapping.clock.monotonic(), 50_000);
});
