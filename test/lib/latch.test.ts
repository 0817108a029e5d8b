import assert from 'node:assert/strict';
import { test } from 'node:test';
import { latch } from '#src/lib/latch.ts';
import { manualClock, quiet } from '#test/support/world/fakes.ts';

test('latch: all who wait get the value as soon as there is one, and later ones at once', async () => {
  const clock = manualClock();
  const gate = latch<string>(clock);
  const waiting = [gate.wait(1000), gate.wait(5000)];
  gate.set('open');
  assert.deepEqual(await Promise.all(waiting), ['open', 'open']);
  assert.equal(await gate.wait(0), 'open');
  gate.clear();
  assert.equal(gate.value(), null);
  const late = gate.wait(1000);
  clock.advance(1000);
  assert.equal(await late, null);
});

test('latch: who gives up leaves nothing behind, however many wait for a value that never comes', async () => {
  const clock = manualClock();
  const gate = latch<string>(clock);
  for (let n = 0; n < 1000; n++) {
    const given = gate.wait(1000);
    clock.advance(1000);
    assert.equal(await given, null);
  }
  assert.equal(gate.waiting(), 0);
  await quiet();
  assert.equal(clock.advanceToNext(), false, 'no timer is left');
});
