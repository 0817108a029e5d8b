// The series of the monitoring summary: how a window is cut, and what this process remembers of its last hour.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { systemClock } from '#src/adapters/runtime/clock.ts';
import { LIMITS } from '#src/domain/limits.ts';
import { processMeter } from '#src/http/request/instrumentation.ts';
import { bucketMs, bucketStarts, wholeWindow } from '#src/http/routes/monitoring.ts';
import { runs } from '#test/support/given/property-runs.ts';
import { clientOf } from '#test/support/process/http-client.ts';
import { failureRecord, fakeWorld, monitoringOf } from '#test/support/world/http-deps.ts';

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
    fc.property(windows, fc.integer({ min: DAY * 40, max: 4e12 }), (wantedMs, nowMs) => {
      const size = bucketMs(wantedMs);
      const windowMs = wholeWindow(wantedMs);
      assert.ok(windowMs >= wantedMs && windowMs < wantedMs + size && windowMs % size === 0);
      assert.equal(bucketMs(windowMs), size, 'it has the same buckets');
      const starts = bucketStarts(nowMs, windowMs, size).map((minute) => Date.parse(`${minute}:00.000Z`));
      assert.ok(starts.length >= 2 && starts.length <= 100);
      const [first = 0] = starts;
      for (const [at, start] of starts.entries()) assert.equal(start, first + at * size);
      assert.equal(first % size, 0);
      assert.ok(first <= nowMs - windowMs && nowMs - windowMs < first + size);
      const last = starts.at(-1) ?? 0;
      assert.ok(last <= nowMs && nowMs < last + size);
    }),
    { numRuns: runs(1000) },
  );
});

type Body = {
  series: { at: string; succeeded: number; failed: number; durationMs: unknown }[];
  durations: unknown;
  stats: { recentSucceeded: number; recentFailed: number };
};

test('series: each bucket with its time, its counts and its durations, empty ones among them', async () => {
  const asked: unknown[] = [];
  const world = fakeWorld({
    clock: { ...systemClock(), now: () => NOW },
    reads: {
      monitoring: {
        ...monitoringOf(),
        // Four executions took 100 to 125 ms in the first bucket of the last hour, and one before it.
        series: async (starts) => {
          asked.push(starts[0], starts.length);
          const none = starts.map((start) => ({ start, succeeded: 0, failed: 0, durations: [] as number[] }));
          const first = none.at(-61) ?? assert.fail();
          const before = none.at(-62) ?? assert.fail();
          Object.assign(first, { succeeded: 3, failed: 1, durations: [0, 0, 0, 0, 0, 0, 0, 4] });
          Object.assign(before, { succeeded: 1, durations: [1] });
          return none;
        },
      },
    },
  });
  const { body } = await clientOf(world).get(`${MONITORING}?windowMs=${HOUR}`);
  const { series, durations, stats: counted } = body as Body;
  assert.deepEqual(asked, ['2026-01-02T01:25', 100], 'the longest window with these buckets');
  assert.deepEqual([counted.recentSucceeded, counted.recentFailed], [3, 1]);
  const [first, second] = series;
  assert.deepEqual(first, {
    at: '2026-01-02T02:04:00.000Z',
    succeeded: 3,
    failed: 1,
    durationMs: { p50: 109, p95: 122 },
  });
  assert.deepEqual(second, { at: '2026-01-02T02:05:00.000Z', succeeded: 0, failed: 0, durationMs: null });
  assert.deepEqual([series.length, series.at(-1)?.at], [61, '2026-01-02T03:04:00.000Z']);
  assert.deepEqual(durations, { p50Ms: 109, p95Ms: 122 });
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

test('all windows are counted once for each size of buckets, on the page and the endpoint, whatever is asked', async () => {
  const counted = { totals: 0, series: 0, failures: 0, unverified: 0 };
  const given = monitoringOf();
  const monitoring: typeof given = {
    ...given,
    totals: (now) => {
      counted.totals++;
      return given.totals(now);
    },
    series: (starts) => {
      counted.series++;
      return given.series(starts);
    },
  };
  const recentFailures = async () => {
    counted.failures++;
    return [];
  };
  const countUnverified = async () => {
    counted.unverified++;
    return 0;
  };
  const { reads } = fakeWorld();
  const client = clientOf(
    fakeWorld({
      reads: {
        monitoring,
        proof: { ...reads.proof, recentFailures },
        receipt: { ...reads.receipt, countUnverified },
      },
      clock: stillClock(),
    }),
  );
  const windows = Array.from({ length: 400 }, (_, n) => MINUTE + n * 6_479_000);
  await Promise.all(windows.map((windowMs) => client.call(`${MONITORING}?windowMs=${windowMs}`)));
  await Promise.all(windows.slice(0, 40).map((windowMs) => client.call(`/status?windowMs=${windowMs}`)));
  assert.deepEqual(counted, { totals: 8, series: 8, failures: 8, unverified: 8 });
});

test('failures of the window alone, though those of a longer one are counted', async () => {
  const old = failureRecord({ completedAt: '2026-01-02T02:03:59.999Z', jobId: 'job_old' });
  const recent = failureRecord({ completedAt: '2026-01-02T02:04:00.000Z', jobId: 'job_recent' });
  const { reads } = fakeWorld();
  const client = clientOf(
    fakeWorld({
      reads: { proof: { ...reads.proof, recentFailures: async () => [recent, old] } },
      clock: { ...systemClock(), now: () => NOW },
    }),
  );
  const failed = async (windowMs: number) => {
    const { body } = await client.get(`${MONITORING}?windowMs=${windowMs}`);
    return (body as { recentFailures: { jobId: string }[] }).recentFailures.map(({ jobId }) => jobId);
  };
  assert.deepEqual(await failed(HOUR), ['job_recent']);
  assert.deepEqual(await failed(HOUR + 1), ['job_recent', 'job_old']);
});

/** No answer grows old by it. */
const stillClock = () => ({ ...systemClock(), now: () => NOW, monotonic: () => 0 });
