import assert from 'node:assert/strict';
import { test } from 'node:test';
import { LIMITS } from '#src/domain/limits.ts';
import { placesOf } from '#src/domain/places.ts';

const RUNS = { hasSchedules: true };

test('as configured: the limits that callers are stated', () => {
  const { verifying, verifyingPerClient, waiting, ...others } = placesOf(512, RUNS);
  assert.deepEqual(others, { all: 512, runs: 128, lookUps: 512, lookUpsPerClient: 256 });
  assert.equal(verifying, LIMITS.verifiesInFlight.max);
  assert.equal(verifyingPerClient, LIMITS.verifiesPerClient.max);
  assert.equal(waiting, LIMITS.verifiesWaiting.max);
});

for (const [max, places] of [
  [1, { all: 2, runs: 1, verifying: 1, verifyingPerClient: 1, waiting: 0 }],
  [2, { all: 2, runs: 1, verifying: 1, verifyingPerClient: 1, waiting: 0 }],
  [4, { all: 4, runs: 1, verifying: 1, verifyingPerClient: 1, waiting: 1 }],
  [16, { all: 16, runs: 4, verifying: 5, verifyingPerClient: 2, waiting: 4 }],
  [160, { all: 160, runs: 40, verifying: 16, verifyingPerClient: 2, waiting: 74 }],
] as const)
  test(`MAX_IN_FLIGHT=${max}: a place for each kind, and the rest for calls that pay`, () => {
    const { lookUps, lookUpsPerClient, ...others } = placesOf(max, RUNS);
    assert.deepEqual(others, places);
    assert.deepEqual([lookUps >= 16, lookUpsPerClient], [true, Math.floor(lookUps / 2)]);
  });

test('whatever MAX_IN_FLIGHT is: none is without a place, and none takes more than its share', () => {
  for (const hasSchedules of [true, false])
    for (let max = 1; max <= 1000; max++) {
      const places = placesOf(max, { hasSchedules });
      const { all, runs, verifying, verifyingPerClient, waiting, lookUps, lookUpsPerClient } = places;
      for (const [name, count] of Object.entries(places))
        assert.ok(Number.isInteger(count), `${max}: ${name} ${count}`);
      assert.ok(lookUps >= 2 * lookUpsPerClient && lookUpsPerClient >= 1, `${max}`);
      assert.ok(runs <= Math.max(1, all / 4) && runs >= 1 === hasSchedules, `${max}`);
      assert.ok(all - runs >= 1 && all >= max && all <= Math.max(2, max), `${max}`);
      assert.ok(verifying >= 1 && verifyingPerClient >= 1 && waiting >= 0, `${max}`);
      assert.ok(verifyingPerClient < verifying || verifying === 1, `${max}`);
      assert.ok(verifying + waiting <= Math.max(1, ((all - runs) * 3) / 4), `${max}`);
    }
});
