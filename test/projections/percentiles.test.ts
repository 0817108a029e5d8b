// Percentiles of counted durations against those of the durations themselves.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { percentilesOf } from '#projections/monitoring/query.ts';
import { DURATION_BOUNDS_MS } from '#projections/monitoring/table.ts';
import { runs } from '#test/support/given/property-runs.ts';

function counted(durations: readonly number[]): number[] {
  const counts: number[] = [];
  for (const duration of durations) {
    const found = DURATION_BOUNDS_MS.findIndex((bound) => duration <= bound);
    const at = found === -1 ? DURATION_BOUNDS_MS.length : found;
    for (let i = counts.length; i <= at; i++) counts.push(0);
    counts[at] = (counts[at] ?? 0) + 1;
  }
  return counts;
}

/** By nearest rank. */
function exact(durations: readonly number[], share: number): number {
  const sorted = durations.toSorted((a, b) => a - b);
  return sorted[Math.ceil(sorted.length * share) - 1] ?? Number.NaN;
}

test('percentiles: there are none without durations', () => {
  assert.equal(percentilesOf([]), null);
  assert.equal(percentilesOf([0, 0]), null);
});

test('percentiles: of one class they lie in it by their rank', () => {
  assert.deepEqual(percentilesOf([100]), { p50: 12, p95: 24 });
  assert.deepEqual(percentilesOf([1]), { p50: 13, p95: 13 });
  const last = DURATION_BOUNDS_MS.map(() => 0);
  assert.deepEqual(percentilesOf([...last, 5]), { p50: 60_000, p95: 60_000 });
});

test('percentiles: at most 28 % off, below 25 ms by 25 ms, above a minute they say a minute', () => {
  const duration = fc.oneof(
    fc.integer({ min: 0, max: 60 }),
    fc.integer({ min: 0, max: 3000 }),
    fc.integer({ min: 0, max: 100_000 }),
  );
  fc.assert(
    fc.property(fc.array(duration, { minLength: 1, maxLength: 200 }), (durations) => {
      const found = percentilesOf(counted(durations));
      assert.ok(found);
      for (const [estimate, share] of [
        [found.p50, 0.5],
        [found.p95, 0.95],
      ] as const) {
        const truth = Math.min(exact(durations, share), 60_000);
        const allowed = truth <= 25 ? 25 : truth * 0.28;
        assert.ok(Math.abs(estimate - truth) <= allowed, `${estimate} for ${truth}`);
      }
      assert.ok(found.p50 <= found.p95);
    }),
    { numRuns: runs(2000) },
  );
});
