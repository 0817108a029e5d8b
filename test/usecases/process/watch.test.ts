import assert from 'node:assert/strict';
import { test } from 'node:test';
import { streamWatch } from '#src/usecases/process/watch.ts';
import { manualClock } from '#test/support/world/fakes.ts';

function watched(limit?: number) {
  const clock = manualClock();
  const watch = streamWatch(clock, limit);
  const unchangedFor = (stream: string, revision: bigint) =>
    watch.unchangedFor({ stream, expected: revision });
  return { clock, watch, unchangedFor };
}

test('0 at first sight, then the time since, on the monotonic clock', () => {
  const { clock, unchangedFor } = watched();
  assert.equal(unchangedFor('a', 0n), 0);
  clock.skew(1_000_000);
  assert.equal(unchangedFor('a', 0n), 0);
  clock.advance(500);
  assert.equal(unchangedFor('a', 0n), 500);
  assert.equal(unchangedFor('b', 0n), 0);
});

test('0 again after every change', () => {
  const { clock, unchangedFor } = watched();
  unchangedFor('a', 0n);
  clock.advance(500);
  assert.equal(unchangedFor('a', 1n), 0);
  clock.advance(7);
  assert.equal(unchangedFor('a', 1n), 7);
});

test('reset forgets all, keepOnly all but the listed', () => {
  const { clock, watch, unchangedFor } = watched();
  for (const stream of ['a', 'b']) unchangedFor(stream, 0n);
  clock.advance(5);
  watch.keepOnly(new Set(['b', 'c']));
  assert.deepEqual([unchangedFor('a', 0n), unchangedFor('b', 0n)], [0, 5]);
  watch.reset();
  assert.deepEqual([unchangedFor('a', 0n), unchangedFor('b', 0n)], [0, 0]);
});

test('beyond the limit the oldest is forgotten, which only makes its watch start again', () => {
  const { clock, unchangedFor } = watched(2);
  for (const stream of ['a', 'b', 'c']) unchangedFor(stream, 0n);
  clock.advance(5);
  assert.deepEqual([unchangedFor('b', 0n), unchangedFor('c', 0n)], [5, 5]);
  assert.equal(unchangedFor('a', 0n), 0);
});
