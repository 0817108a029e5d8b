// The series of the monitoring summary: how a window is cut, and what this process remembers of its last hour.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { windowStart } from '#projections/monitoring/query.ts';
import { systemClock } from '#src/adapters/runtime/clock.ts';
import { LIMITS } from '#src/domain/limits.ts';
import { processMeter } from '#src/http/instrumentation.ts';
import { bucketMs, bucketStarts } from '#src/http/routes/monitoring.ts';
import { clientOf } from '#test/support/http-client.ts';
import { fakeWorld, stats } from '#test/support/http-deps.ts';
import { runs } from '#test/support/property-runs.ts';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const MONITORING = '/api/monitoring/executions';
const NOW = Date.parse('2026-01-02T03:04:05.678Z');

test('series: a bucket is the finest round one of which the window has no more than a hundred', () => {
  const cases = [
    [MINUTE, MINUTE],
    [HOUR, MINUTE],
    [99 * MINUTE, MINUTE],
    [99 * MINUTE + 1, 5 * MINUTE],
    [6 * HOUR, 5 * MINUTE],
    [DAY, 15 * MINUTE],
    [2 * DAY, 30 * MINUTE],
    [4 * DAY, HOUR],
    [7 * DAY, 2 * HOUR],
    [20 * DAY, 6 * HOUR],
    [30 * DAY, 8 * HOUR],
  ] as const;
  for (const [windowMs, size] of cases) assert.equal(bucketMs(windowMs), size, `${windowMs}`);
});

test('series: buckets cover any window without a gap, at multiples of their size, a hundred at most', () => {
  const windows = fc.integer(LIMITS.monitoringWindowMs);
  fc.assert(
    fc.property(windows, fc.integer({ min: DAY * 40, max: 4e12 }), (windowMs, nowMs) => {
      const size = bucketMs(windowMs);
      const since = windowStart(nowMs, windowMs);
      const starts = bucketStarts(since, nowMs, size).map((minute) => Date.parse(`${minute}:00.000Z`));
      assert.ok(starts.length >= 1 && starts.length <= 100);
      const [first = 0] = starts;
      for (const [at, start] of starts.entries()) assert.equal(start, first + at * size);
      assert.equal(first % size, 0);
      const sinceMs = Date.parse(`${since}:00.000Z`);
      assert.ok(first <= sinceMs && sinceMs < first + size);
      const last = starts.at(-1) ?? 0;
      assert.ok(last <= nowMs && nowMs < last + size);
    }),
    { numRuns: runs(1000) },
  );
});

test('series: a clock that went back leaves one bucket', () => {
  assert.deepEqual(bucketStarts('2026-01-02T03:04', NOW - DAY, MINUTE), ['2026-01-02T03:04']);
});

type Body = {
  series: { at: string; succeeded: number; failed: number; durationMs: unknown }[];
  durations: unknown;
};

test('series: each bucket with its time, its counts and its durations, empty ones among them', async () => {
  const asked: unknown[] = [];
  const world = fakeWorld({
    clock: { ...systemClock(), now: () => NOW },
    reads: {
      monitoring: {
        summary: async () => ({ stats, failureRate: 0.25, overdue: 0 }),
        series: async (since, starts) => {
          asked.push(since, starts.length);
          const [first = '', ...rest] = starts;
          const durationMs = { p50: 120, p95: 480 };
          const none = rest.map((start) => ({ start, succeeded: 0, failed: 0, durationMs: null }));
          return { buckets: [{ start: first, succeeded: 3, failed: 1, durationMs }, ...none], durationMs };
        },
      },
    },
  });
  const { body } = await clientOf(world).get(`${MONITORING}?windowMs=${HOUR}`);
  const { series, durations } = body as Body;
  assert.deepEqual(asked, ['2026-01-02T02:04', 61]);
  const [first, second] = series;
  assert.deepEqual(first, {
    at: '2026-01-02T02:04:00.000Z',
    succeeded: 3,
    failed: 1,
    durationMs: { p50: 120, p95: 480 },
  });
  assert.deepEqual(second, { at: '2026-01-02T02:05:00.000Z', succeeded: 0, failed: 0, durationMs: null });
  assert.deepEqual([series.length, series.at(-1)?.at], [61, '2026-01-02T03:04:00.000Z']);
  assert.deepEqual(durations, { p50Ms: 120, p95Ms: 480 });
});

test('process: all requests are counted, and the percentiles are of the last answers', () => {
  const time = { monotonic: 0 };
  const meter = processMeter({ monotonic: () => time.monotonic });
  assert.deepEqual(meter.read(), { uptimeMs: 0, requests: 0, inFlight: 0, p50Ms: 0, p99Ms: 0 });
  for (let i = 0; i < 3000; i++) {
    meter.begin();
    meter.answered(i < 1500 ? 5000 : 10);
  }
  meter.begin();
  time.monotonic = 1234.5;
  assert.deepEqual(meter.read(), { uptimeMs: 1234, requests: 3001, inFlight: 1, p50Ms: 10, p99Ms: 10 });
});

test('windows that are asked for at once share one query, on the page and the endpoint; other windows have theirs', async () => {
  const asked: number[] = [];
  const given = fakeWorld();
  const summary = async (_: number, windowMs: number) => {
    asked.push(windowMs);
    return { stats, failureRate: 0.25, overdue: 0 };
  };
  const monitoring = { ...given.reads.monitoring, summary };
  const client = clientOf(fakeWorld({ reads: { monitoring }, clock: stillClock() }));
  const paths = [MONITORING, '/status'].map((path) => `${path}?windowMs=${DAY}`);
  await Promise.all([...paths, ...paths, ...paths].map((path) => client.call(path)));
  await client.call(`${MONITORING}?windowMs=${HOUR}`);
  assert.deepEqual(asked, [DAY, HOUR]);
});

/** No answer grows old by it. */
const stillClock = () => ({ ...systemClock(), now: () => NOW, monotonic: () => 0 });
