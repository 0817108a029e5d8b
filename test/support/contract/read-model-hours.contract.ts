// Part of the suite over every read store: windows of monitoring that are read by the hour say what their minutes say.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sql } from 'drizzle-orm';
import fc from 'fast-check';
import { windowStart } from '#projections/monitoring/query.ts';
import type { ReadModels } from '#projections/read-models.ts';
import { bucketMs, bucketStarts } from '#src/http/routes/monitoring.ts';
import { appendAll, jobAppends, PLAN } from '#test/support/given/job-histories.ts';
import { memoryLog } from '#test/support/log/memory-log.ts';
import {
  commonLog,
  emptyRows,
  modelsOver,
  project,
  type ReadStoreHarness,
  rowsFor,
} from '#test/support/log/read-store.ts';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** What is asked of one window: from its minute, and in buckets from the start of one, of three sizes. */
async function windowOf({ monitoring }: Pick<ReadModels, 'monitoring'>, nowMs: number, windowMs: number) {
  const sizes = [bucketMs(windowMs), HOUR, DAY];
  const starts = sizes.map((size) => bucketStarts(nowMs, Math.ceil(windowMs / size) * size, size));
  return {
    summary: await monitoring.summary(nowMs, windowMs),
    starts: starts.map(([first = '']) => first),
    series: await Promise.all(starts.map((each) => monitoring.series(each))),
  };
}

export function hoursContract(harness: ReadStoreHarness): void {
  test('monitoring over any window says by the hour what it says by the minute', async () => {
    const store = await harness.fresh();
    const nowMs = PLAN.startedAtMs;
    // Most of them around a full hour.
    const ago = fc.oneof(
      fc.integer({ min: 0, max: 40 * DAY }),
      fc
        .tuple(fc.integer({ min: 0, max: 40 * 24 }), fc.integer({ min: -2, max: 2 }))
        .map(([hours, minutes]) => Math.max(0, (nowMs % HOUR) + hours * HOUR + minutes * MINUTE)),
    );
    const jobs = fc.array(
      fc.record({
        ago,
        answer: fc.constantFrom(200, 500, null),
        attemptMs: fc.integer({ min: 0, max: 90_000 }),
      }),
      { minLength: 1, maxLength: 25 },
    );
    const windows = fc.array(ago, { minLength: 4, maxLength: 8 });
    await fc.assert(
      fc.asyncProperty(jobs, windows, async (plans, sizes) => {
        const log = await commonLog();
        await emptyRows(await rowsFor(log, store));
        for (const [seed, { ago, answer, attemptMs }] of plans.entries()) {
          const startedAtMs = nowMs - ago - attemptMs;
          await appendAll(log, jobAppends({ ...PLAN, seed, startedAtMs, attemptMs, answers: [answer] }));
        }
        const models = modelsOver(await project(log, store, { batchSize: 7 }));
        for (const size of [...sizes, ...plans.map((plan) => plan.ago)]) {
          const windowMs = Math.max(MINUTE, size);
          const byHour = await windowOf(models, nowMs, windowMs);
          const since = windowStart(nowMs, windowMs);
          const ends = plans.map(({ ago }) => new Date(nowMs - ago).toISOString());
          const endedIn = (start: string) => ends.filter((end) => end.slice(0, 16) >= start).length;
          const { recentSucceeded, recentFailed } = byHour.summary.stats;
          assert.equal(recentSucceeded + recentFailed, endedIn(since));
          for (const [at, buckets] of byHour.series.entries())
            assert.equal(
              buckets.reduce((sum, { succeeded, failed }) => sum + succeeded + failed, 0),
              endedIn(byHour.starts[at] ?? ''),
            );
        }
      }),
      { numRuns: harness.runs(15) },
    );
  });

  test('minutes are read up to the first full hour of a window, and all of them where a bucket is shorter', async () => {
    const store = await harness.fresh();
    // It ends in the minute 03:04; the others in the hours after it.
    const log = memoryLog();
    for (const seed of [0, 1, 2])
      await appendAll(log, jobAppends({ ...PLAN, seed, startedAtMs: PLAN.startedAtMs + seed * HOUR }));
    const db = await project(log, store);
    const models = modelsOver(db);
    const nowMs = PLAN.startedAtMs + 3 * HOUR;
    const before = await windowOf(models, nowMs, 3 * HOUR);
    const finished = (found: Awaited<ReturnType<typeof windowOf>>) => [
      found.summary.stats.recentSucceeded,
      ...found.series.map((buckets) => buckets.reduce((sum, { succeeded }) => sum + succeeded, 0)),
    ];
    assert.deepEqual(finished(before), [3, 3, 3, 3]);
    await db.execute(sql`delete from monitoring_minutes where minute >= '2026-01-02T04:00'`);
    assert.deepEqual(finished(await windowOf(models, nowMs, 3 * HOUR)), [3, 1, 3, 3]);
    await db.execute(sql`delete from monitoring_minutes`);
    // Buckets of hours begin with an hour: no minute is read for them.
    assert.deepEqual(finished(await windowOf(models, nowMs, 3 * HOUR)), [2, 0, 3, 3]);
  });
}
