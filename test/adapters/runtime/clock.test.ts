import assert from 'node:assert/strict';
import { test } from 'node:test';
import { systemClock, systemEntropy } from '#src/adapters/runtime/clock.ts';

test('clock: the wall clock is in ms of the Unix epoch, the monotonic one never goes back', () => {
  const clock = systemClock();
  assert.ok(Math.abs(clock.now() - Date.now()) < 1000);
  let last = clock.monotonic();
  for (let i = 0; i < 1000; i++) {
    const next = clock.monotonic();
    assert.ok(next >= last);
    last = next;
  }
});

test('clock: sleep waits at least its time, and not at all for less than nothing', async () => {
  const clock = systemClock();
  const before = clock.monotonic();
  await clock.sleep(30);
  // timers may fire a millisecond early
  assert.ok(clock.monotonic() - before >= 28);
  await clock.sleep(-5);
});

test('clock: sleep ends at once when its signal aborts, before or during it, and leaves no listener', async () => {
  const clock = systemClock();
  const hour = 3_600_000;
  await clock.sleep(hour, AbortSignal.abort());
  let listeners = 0;
  const controller = new AbortController();
  const { signal } = controller;
  const counted = {
    get aborted() {
      return signal.aborted;
    },
    addEventListener: (type: 'abort', listener: () => void, options?: { once?: boolean }) => {
      listeners++;
      signal.addEventListener(type, listener, options);
    },
    removeEventListener: (type: 'abort', listener: () => void) => {
      listeners--;
      signal.removeEventListener(type, listener);
    },
  };
  const sleeping = clock.sleep(hour, counted);
  assert.equal(listeners, 1);
  controller.abort();
  await sleeping;
  await clock.sleep(1, { ...counted, aborted: false });
  assert.equal(listeners, 0);
});

test('entropy: bytes of the asked count, random version-4 UUIDs, fractions in [0, 1)', () => {
  const entropy = systemEntropy();
  assert.equal(entropy.bytes(16).length, 16);
  assert.notDeepEqual(entropy.bytes(16), entropy.bytes(16));
  assert.match(entropy.uuid(), /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
  assert.notEqual(entropy.uuid(), entropy.uuid());
  const fractions = Array.from({ length: 2000 }, () => entropy.fraction());
  assert.ok(fractions.every((fraction) => fraction >= 0 && fraction < 1));
  assert.ok(fractions.some((fraction) => fraction < 0.1) && fractions.some((fraction) => fraction > 0.9));
});
