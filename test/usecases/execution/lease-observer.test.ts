import assert from 'node:assert/strict';
import { test } from 'node:test';
import { streamWatch } from '#src/usecases/execution/recover-jobs.ts';
import { manualClock } from '#test/support/fakes.ts';

function watched(limit?: number) {
  const clock = manualClock();
  return { clock, watch: streamWatch(clock, limit) };
}

test('0 at first sight, then the time since, on the monotonic clock', () => {
  const { clock, watch } = watched();
  assert.equal(watch.unchangedFor('a', '0'), 0);
  clock.skew(1_000_000);
  assert.equal(watch.unchangedFor('a', '0'), 0);
  clock.advance(500);
  assert.equal(watch.unchangedFor('a', '0'), 500);
  assert.equal(watch.unchangedFor('b', '0'), 0);
});

test('0 again after every change', () => {
  const { clock, watch } = watched();
  watch.unchangedFor('a', '0');
  clock.advance(500);
  assert.equal(watch.unchangedFor('a', '1'), 0);
  clock.advance(7);
  assert.equal(watch.unchangedFor('a', '1'), 7);
});

test('reset forgets all, keepOnly all but the listed', () => {
  const { clock, watch } = watched();
  for (const stream of ['a', 'b']) watch.unchangedFor(stream, '0');
  clock.advance(5);
  watch.keepOnly(new Set(['b', 'c']));
  assert.deepEqual([watch.unchangedFor('a', '0'), watch.unchangedFor('b', '0')], [0, 5]);
  watch.reset();
  assert.deepEqual([watch.unchangedFor('a', '0'), watch.unchangedFor('b', '0')], [0, 0]);
});

test('beyond the limit the oldest observation is dropped, which only restarts it', () => {
  const { clock, watch } = watched(2);
  for (const stream of ['a', 'b', 'c']) watch.unchangedFor(stream, '0');
  clock.advance(5);
  assert.deepEqual([watch.unchangedFor('b', '0'), watch.unchangedFor('c', '0')], [5, 5]);
  assert.equal(watch.unchangedFor('a', '0'), 0);
});
