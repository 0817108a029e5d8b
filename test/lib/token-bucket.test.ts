import { deepEqual, equal, ok } from 'node:assert/strict';
import { test } from 'node:test';
import { TokenBuckets } from '#src/lib/token-bucket.ts';
import { manualClock } from '#test/support/world/fakes.ts';

test('token bucket: a burst at once, then one unit for each interval; each key for itself', () => {
  const clock = manualClock();
  const buckets = new TokenBuckets(clock, { perSecond: 10, burst: 3 });
  const allowed = () => buckets.take('a').allowed;
  deepEqual([allowed(), allowed(), allowed(), allowed()], [true, true, true, false]);
  equal(buckets.take('b').allowed, true);
  clock.advance(99);
  equal(allowed(), false);
  clock.advance(1);
  deepEqual([allowed(), allowed()], [true, false]);
  clock.advance(10_000);
  deepEqual([allowed(), allowed(), allowed(), allowed()], [true, true, true, false], 'no more than a burst');
});

test('token bucket: what is left, when there is another unit, and when it is full', () => {
  const clock = manualClock();
  const buckets = new TokenBuckets(clock, { perSecond: 10, burst: 3 });
  deepEqual(buckets.take('a'), { allowed: true, remaining: 2, waitMs: 0, fullMs: 100 });
  deepEqual(buckets.take('a'), { allowed: true, remaining: 1, waitMs: 0, fullMs: 200 });
  deepEqual(buckets.take('a'), { allowed: true, remaining: 0, waitMs: 0, fullMs: 300 });
  clock.advance(40);
  deepEqual(buckets.take('a'), { allowed: false, remaining: 0, waitMs: 60, fullMs: 260 });
});

test('token bucket: a unit can be taken ahead, within a limit', () => {
  const clock = manualClock();
  const buckets = new TokenBuckets(clock, { perSecond: 10, burst: 1 });
  const waits = Array.from({ length: 5 }, () => {
    const { allowed, waitMs } = buckets.take('', 250);
    return allowed ? waitMs : null;
  });
  deepEqual(waits, [0, 100, 200, null, null]);
  clock.advance(100);
  equal(buckets.take('', 250).waitMs, 200);
});

test('token bucket: full buckets are forgotten, and the others beyond the limit, least recently used first', () => {
  const clock = manualClock();
  const buckets = new TokenBuckets(clock, { perSecond: 1, burst: 2 }, 1000);
  for (let n = 0; n < 5000; n++) buckets.take(`a ${n}`);
  ok(buckets.size <= 1000, `${buckets.size}`);
  clock.advance(2000);
  buckets.take('b');
  equal(buckets.size, 1);
});
