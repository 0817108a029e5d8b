import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Cancel } from '#src/lib/time.ts';
import { firstComparison } from '#src/usecases/transparency/whole-record.ts';
import { manualClock, quiet } from '#test/support/world/fakes.ts';

/** `opening`: whether another try makes sense, after each that came too early. */
function scripted(...opening: readonly boolean[]) {
  const seen: unknown[] = [];
  const answers = [...opening];
  const clock = manualClock();
  const comparison = {
    clock,
    async compared() {
      seen.push('asked');
      return answers.length > 0 ? null : ['note'];
    },
    isOpening: () => answers.shift() === true,
    async compareKept(notes: readonly string[]) {
      seen.push(notes);
    },
  };
  return { seen, comparison, clock };
}

test('rows that were compared with the log: their checkpoints are compared at once', async () => {
  const { seen, comparison } = scripted();
  await firstComparison(comparison, new Cancel());
  assert.deepEqual(seen, ['asked', ['note']]);
});

test('rows that take longer than a try to be compared with the log: waited for, then compared', async () => {
  const { seen, comparison } = scripted(true, true);
  await firstComparison(comparison, new Cancel());
  assert.deepEqual(seen, ['asked', 'asked', 'asked', ['note']]);
});

test('a database that does not answer: calls do not wait for it', async () => {
  const { seen, comparison } = scripted(false);
  await firstComparison(comparison, new Cancel());
  assert.deepEqual(seen, ['asked']);
});

test('a comparison that fails is no failure of the start; one without an end ends with the process', async () => {
  const compareKept = async () => {
    throw new Error('the log does not answer');
  };
  await firstComparison({ ...scripted().comparison, compareKept }, new Cancel());
  const ending = new Cancel();
  const hangs = { ...scripted().comparison, compareKept: () => new Promise<void>(() => {}) };
  const endless = firstComparison(hangs, ending);
  ending.abort();
  await endless;
});

test('a comparison without an end: calls wait 20 s for it, by the clock of the process', async () => {
  const { comparison, clock } = scripted();
  const hangs = { ...comparison, compareKept: () => new Promise<void>(() => {}) };
  let isOver = false;
  const waiting = firstComparison(hangs, new Cancel()).then(() => {
    isOver = true;
  });
  clock.advance(19_999);
  await quiet();
  assert.equal(isOver, false);
  clock.advance(1);
  await quiet();
  clock.advance(0);
  await waiting;
});
