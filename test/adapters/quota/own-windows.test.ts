import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ownWindows } from '#src/adapters/quota/own-windows.ts';

const WINDOW_MS = 1000;

function windowsAt(keysMax = 100) {
  const clock = { ms: 5000 };
  return { clock, windows: ownWindows(() => clock.ms, keysMax) };
}

test('own windows: what the shared count says is believed, less or more', () => {
  const { windows } = windowsAt();
  windows.learn('a', 1, { points: 7, resetMs: 300 });
  assert.deepEqual(windows.learn('a', 1, { points: 2, resetMs: 900 }), { points: 2, resetMs: 900 });
  assert.deepEqual(windows.open('a'), { points: 2, resetMs: 900 });
});

test('own windows: counting alone goes on from what is known, to the end of that window', () => {
  const { clock, windows } = windowsAt();
  windows.learn('a', 1, { points: 7, resetMs: 300 });
  clock.ms += 299;
  assert.deepEqual(windows.take('a', 2, WINDOW_MS), { points: 9, resetMs: 1 });
  // the shared count knows nothing of these two
  assert.deepEqual(windows.learn('a', 1, { points: 8, resetMs: 1 }), { points: 10, resetMs: 1 });
  clock.ms += 1;
  assert.equal(windows.open('a'), null);
  assert.deepEqual(windows.take('a', 2, WINDOW_MS), { points: 2, resetMs: WINDOW_MS });
});

test('own windows: what was counted alone stays counted beside the shared window, until it ends', () => {
  const { clock, windows } = windowsAt();
  windows.take('a', 5, WINDOW_MS);
  clock.ms += 100;
  assert.deepEqual(windows.learn('a', 1, { points: 1, resetMs: WINDOW_MS }), { points: 6, resetMs: 900 });
  assert.deepEqual(windows.learn('a', 1, { points: 9, resetMs: 1000 }), { points: 9, resetMs: 1000 });
  assert.deepEqual(windows.open('a'), { points: 7, resetMs: 900 });
  clock.ms += 900;
  assert.deepEqual(windows.learn('a', 1, { points: 2, resetMs: 500 }), { points: 2, resetMs: 500 });
});

test('own windows: of too many keys the oldest is forgotten', () => {
  const { windows } = windowsAt(3);
  for (const key of ['a', 'b', 'c', 'd']) windows.take(key, 1, WINDOW_MS);
  assert.deepEqual(
    ['a', 'b', 'c', 'd'].map((key) => windows.open(key)?.points),
    [undefined, 1, 1, 1],
  );
});
