import assert from 'node:assert/strict';
import { test } from 'node:test';
import { lagHistory } from '#src/app/lag-history.ts';

const MINUTE = 60_000;

/** A clock whose sleeps end when the test says so. */
function world() {
  const time = { now: 10 * MINUTE, lagMs: 0, looks: 0 };
  const ending = new AbortController();
  let wake = () => {};
  const clock = {
    now: () => time.now,
    sleep: (_: number, signal?: unknown) => {
      assert.equal(signal, ending.signal);
      return new Promise<void>((resolve) => {
        wake = resolve;
      });
    },
  };
  const lag = () => {
    time.looks++;
    return { lagMs: time.lagMs };
  };
  const history = lagHistory(lag, clock, ending.signal);
  /** One beat of the sampler. */
  const beat = async () => {
    wake();
    await new Promise((resolve) => setImmediate(resolve));
  };
  return { time, ending, history, beat };
}

test('lag: the most that was seen in a minute is kept, also when nobody asks', async () => {
  const { time, history, beat } = world();
  time.lagMs = 400;
  await beat();
  time.lagMs = 20;
  await beat();
  time.now += MINUTE;
  await beat();
  time.lagMs = 30;
  assert.deepEqual(history(), [
    { minute: 10, lagMs: 400 },
    { minute: 11, lagMs: 30 },
  ]);
});

test('lag: of an hour of minutes, no more', async () => {
  const { time, history, beat } = world();
  for (let i = 0; i < 90; i++) {
    time.now += MINUTE;
    await beat();
  }
  const minutes = history().map(({ minute }) => minute);
  assert.deepEqual([minutes.length, minutes[0], minutes.at(-1)], [60, 41, 100]);
});

test('lag: nobody looks any more once the service ends', async () => {
  const { time, ending, beat } = world();
  await beat();
  ending.abort();
  await beat();
  const { looks } = time;
  await beat();
  assert.equal(time.looks, looks);
});
