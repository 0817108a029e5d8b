// Part of the suite over every read store: windows of monitoring that are read by the hour say what their minutes say.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sql } from 'drizzle-orm';
import fc from 'fast-check';
import { windowStart } from '#projections/monitoring/query.ts';
import { monitoringHours } from '#projections/monitoring/table.ts';
import { readModels } from '#projections/read-models.ts';
import { READ_MODELS, type ReadModel } from '#projections/registry.ts';
import { writeModelVersions } from '#projections/versions.ts';
import { systemClock } from '#src/adapters/runtime/clock.ts';
import { bucketMs, bucketStarts } from '#src/http/pages/monitoring-series.ts';
import { appendAll, jobAppends, PLAN } from './job-histories.ts';
import { memoryLog } from './memory-log.ts';
import { projectWith } from './read-model-versions.contract.ts';
import { emptyRows, type ReadStoreHarness } from './read-store.ts';

const options = (harness: ReadStoreHarness) => ({ ...harness.needs, timeout: 120_000 });

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** The models of a build that knew no hours: its monitoring is of version 1. */
const WITHOUT_HOURS: readonly ReadModel[] = READ_MODELS.map((model) =>
  model.name !== 'monitoring'
    ? model
    : {
        ...model,
        version: 1,
        tables: model.tables.filter((table) => table !== monitoringHours),
        project: (...given) =>
          model.project(...given).filter((change) => change.table !== 'monitoring_hours'),
      },
);

/** What is asked of one window, in the buckets that the endpoint would take, in hours and whole. */
async function windowOf(
  { monitoring }: Pick<ReturnType<typeof readModels>, 'monitoring'>,
  nowMs: number,
  windowMs: number,
) {
  const since = windowStart(nowMs, windowMs);
  const sizes = [bucketMs(windowMs), HOUR, DAY];
  return {
    summary: await monitoring.summary(nowMs, windowMs),
    series: await Promise.all(
      sizes.map((size) => monitoring.series(since, bucketStarts(since, nowMs, size))),
    ),
  };
}

const version = (stamped: number) => [{ name: 'monitoring', version: stamped }];

export function hoursContract(harness: ReadStoreHarness): void {
  const { name } = harness;

  test(
    `${name}: monitoring over any window says by the hour what it says by the minute`,
    options(harness),
    async () => {
      const store = await harness.fresh();
      const db = await store.open();
      const models = readModels(store, systemClock(), async () => true);
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
          await emptyRows(db);
          const log = memoryLog();
          for (const [seed, { ago, answer, attemptMs }] of plans.entries()) {
            const startedAtMs = nowMs - ago - attemptMs;
            await appendAll(log, jobAppends({ ...PLAN, seed, startedAtMs, attemptMs, answers: [answer] }));
          }
          await projectWith(READ_MODELS, log, store, 7);
          for (const size of [...sizes, ...plans.map((plan) => plan.ago)]) {
            const windowMs = Math.max(MINUTE, size);
            const byHour = await windowOf(models, nowMs, windowMs);
            await writeModelVersions(db, version(1));
            const byMinute = await windowOf(models, nowMs, windowMs);
            await writeModelVersions(db, version(2));
            assert.deepEqual(byHour, byMinute, `${windowMs} ms`);
            const since = windowStart(nowMs, windowMs);
            const ends = plans.map(({ ago }) => new Date(nowMs - ago).toISOString());
            assert.equal(
              byHour.summary.stats.recentSucceeded + byHour.summary.stats.recentFailed,
              ends.filter((end) => end.slice(0, 16) >= since).length,
            );
          }
        }),
        { numRuns: 15 },
      );
    },
  );

  test(
    `${name}: minutes are read up to the first full hour of a window, and all of them where a bucket is shorter`,
    options(harness),
    async () => {
      const store = await harness.fresh();
      const db = await store.open();
      const models = readModels(store, systemClock(), async () => true);
      // It ends in the minute 03:04; the others in the hours after it.
      const log = memoryLog();
      for (const seed of [0, 1, 2])
        await appendAll(log, jobAppends({ ...PLAN, seed, startedAtMs: PLAN.startedAtMs + seed * HOUR }));
      await projectWith(READ_MODELS, log, store);
      const nowMs = PLAN.startedAtMs + 3 * HOUR;
      const before = await windowOf(models, nowMs, 3 * HOUR);
      const finished = (found: Awaited<ReturnType<typeof windowOf>>) => [
        found.summary.stats.recentSucceeded,
        ...found.series.map(({ buckets }) => buckets.reduce((sum, { succeeded }) => sum + succeeded, 0)),
      ];
      assert.deepEqual(finished(before), [3, 3, 3, 3]);
      await db.execute(sql`delete from monitoring_minutes where minute >= '2026-01-02T04:00'`);
      assert.deepEqual(finished(await windowOf(models, nowMs, 3 * HOUR)), [3, 1, 3, 3]);
      await db.execute(sql`delete from monitoring_minutes`);
      assert.deepEqual(finished(await windowOf(models, nowMs, 3 * HOUR)), [2, 0, 2, 2]);
    },
  );

  // Embedded rows of another version are replayed by themselves.
  if (name === 'pglite') return;

  test(
    `${name}: rows that a version without hours tells, before this one or beside it, are counted by the minute`,
    options(harness),
    async () => {
      const store = await harness.fresh();
      const models = readModels(store, systemClock(), async () => true);
      const log = memoryLog();
      const nowMs = PLAN.startedAtMs + 5 * HOUR;
      for (const [seed, build] of [WITHOUT_HOURS, READ_MODELS, WITHOUT_HOURS, READ_MODELS].entries()) {
        await appendAll(log, jobAppends({ ...PLAN, seed, startedAtMs: PLAN.startedAtMs + seed * HOUR }));
        await projectWith(build, log, store);
        const { summary, series } = await windowOf(models, nowMs, 7 * DAY);
        assert.equal(summary.stats.recentSucceeded, seed + 1);
        for (const { buckets } of series)
          assert.equal(
            buckets.reduce((sum, { succeeded }) => sum + succeeded, 0),
            seed + 1,
          );
      }
    },
  );
}
