// Part of the suite over every read store: what is kept for how long, and what is said of what is gone.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { makePurge, purgeOnce } from '#projections/purge.ts';
import { storeQueries } from '#projections/read-models.ts';
import { systemClock } from '#src/adapters/runtime/clock.ts';
import type { DomainEvent } from '#src/domain/events.ts';
import {
  appendAll,
  decisionAppend,
  decisionIdOf,
  histories,
  jobAppends,
  jobIdOf,
  PLAN,
  receiptIdOf,
} from '#test/support/given/job-histories.ts';
import { memoryLog } from '#test/support/log/memory-log.ts';
import {
  allRows,
  commonLog,
  dropGenerations,
  emptyRows,
  folded,
  project,
  type ReadStoreHarness,
  reached,
  retentionOf,
  rowsFor,
  runnerOver,
  servedBy,
} from '#test/support/log/read-store.ts';
import { waitFor } from '#test/support/process/service.ts';
import { collectingLogger } from '#test/support/world/fakes.ts';

const DAY_MS = 86_400_000;
const instant = (ms: number) => new Date(ms).toISOString();

type Stored = Record<string, readonly unknown[]>;
type Horizons = { readonly jobs: string | null; readonly receipts: string | null };

/** Of all rows projected from the log, those that the retention horizons keep. */
function retained(rows: Stored, { jobs, receipts }: Horizons): Stored {
  const left = (table: string, time: string, horizon: string | null) =>
    (rows[table] ?? []).filter((row) => {
      const fields = row as Record<string, unknown>;
      return fields.status === 'running' || horizon === null || String(fields[time]) >= horizon;
    });
  return {
    ...rows,
    jobs: left('jobs', 'updated_at', jobs),
    proofs: left('proofs', 'updated_at', jobs),
    receipts: left('receipts', 'signed_at', receipts),
    decisions: left('decisions', 'created_at', receipts),
  };
}

const horizonsOf = ({
  jobsBefore,
  receiptsBefore,
}: {
  jobsBefore: string | null;
  receiptsBefore: string | null;
}) => ({
  jobs: jobsBefore,
  receipts: receiptsBefore,
});

export function purgeContract(harness: ReadStoreHarness): void {
  test('after every step of the purge exactly what ended before the horizon is gone, and is counted', async () => {
    const store = await harness.fresh();
    const minute = fc.integer({ min: 0, max: 14 }).map((n) => instant(Date.UTC(2026, 0, 1) + n * 60_000));
    const before = fc.record({ jobs: fc.option(minute), receipts: fc.option(minute) });
    let steps = 0;
    await fc.assert(
      fc.asyncProperty(
        histories,
        before,
        fc.integer({ min: 1, max: 4 }),
        async (appends, limits, maxRows) => {
          const log = await commonLog();
          await emptyRows(await rowsFor(log, store));
          await appendAll(log, appends);
          const db = await project(log, store);
          const all = await folded(log);
          for (let more = true; more; steps++) {
            const last = horizonsOf(await retentionOf(db));
            const purged = await purgeOnce(db, limits, maxRows);
            more = purged.more;
            const { jobsPurged, receiptsPurged, ...moved } = await retentionOf(db);
            const horizons = horizonsOf(moved);
            const rows = await allRows(db);
            assert.deepEqual(rows, retained(all, horizons));
            assert.equal(jobsPurged, (all.jobs?.length ?? 0) - (rows.jobs?.length ?? 0));
            assert.equal(receiptsPurged, (all.receipts?.length ?? 0) - (rows.receipts?.length ?? 0));
            assert.deepEqual(await storeQueries(db).counts(), {
              jobs: rows.jobs?.length,
              receipts: rows.receipts?.length,
            });
            for (const which of ['jobs', 'receipts'] as const) {
              assert.ok((horizons[which] ?? '') >= (last[which] ?? ''), 'a horizon never goes back');
              assert.ok((horizons[which] ?? '') <= (limits[which] ?? ''), 'nothing goes that is still kept');
            }
            if (more) assert.ok(purged.gone > 0, 'every step but the last one gets on');
            else assert.deepEqual(rows, retained(all, limits));
          }
        },
      ),
      { numRuns: harness.runs(25) },
    );
    assert.ok(steps > harness.runs(25) / 2, `only ${steps} steps`);
  });

  test('the oldest go first, a few at a time; what ended at one time goes together', async () => {
    const store = await harness.fresh();
    const log = memoryLog();
    const endsAt = [5, 1, 3, 3, 3, 2, 4, 0];
    for (const [seed, minutes] of endsAt.entries())
      await appendAll(log, jobAppends({ ...PLAN, seed, startedAtMs: PLAN.startedAtMs + minutes * 60_000 }));
    const db = await project(log, store);
    const before = { jobs: instant(PLAN.startedAtMs + 5 * 60_000), receipts: null };
    const left: number[] = [];
    for (let more = true; more; ) {
      more = (await purgeOnce(db, before, 2)).more;
      left.push((await allRows(db)).jobs?.length ?? 0);
    }
    assert.deepEqual(left, [6, 5, 2, 1]);
    assert.equal((await allRows(db)).receipts?.length, endsAt.length, 'each kind has its own horizon');
  });

  test('of the tables that share a horizon each gives no more than a few rows at a time', async () => {
    const store = await harness.fresh();
    const log = memoryLog();
    const at = (minutes: number) => PLAN.startedAtMs + minutes * 60_000;
    for (let n = 0; n < 5; n++) await appendAll(log, [decisionAppend(n, at(n))]);
    for (let n = 0; n < 5; n++)
      await appendAll(log, jobAppends({ ...PLAN, seed: n, startedAtMs: at(3 + n) }));
    const db = await project(log, store);
    const before = { jobs: null, receipts: instant(at(60)) };
    const left: (readonly (number | undefined)[])[] = [];
    for (let more = true; more; ) {
      more = (await purgeOnce(db, before, 2)).more;
      const { decisions, receipts } = await allRows(db);
      left.push([decisions?.length, receipts?.length]);
    }
    assert.deepEqual(left, [
      [3, 5],
      [1, 4],
      [0, 2],
      [0, 0],
    ]);
  });

  test('a runner that has caught up purges automatically; late events do not restore purged rows, which stay counted permanently', async () => {
    const store = await harness.fresh();
    const log = memoryLog();
    // A purger's clock has to be that of the store.
    const now = Date.now();
    const long = { startedAtMs: now - 10 * DAY_MS };
    const recent = { startedAtMs: now - DAY_MS };
    const old = jobAppends({ ...PLAN, seed: 1, answers: [500], decision: 1, ...long });
    await appendAll(log, [
      decisionAppend(1, long.startedAtMs),
      ...old,
      ...jobAppends({ ...PLAN, seed: 2, end: 'running', ...long }),
      ...jobAppends({ ...PLAN, seed: 3, ...recent }),
    ]);
    const runner = runnerOver(log, store, { retentionMs: { jobs: 7 * DAY_MS, receipts: null } });
    const models = servedBy(runner);
    const db = await rowsFor(log, store);
    await waitFor('the purge', async () => (await retentionOf(db)).jobsPurged > 0);
    assert.equal(await models.job.find(jobIdOf(1)), null);
    assert.equal(await models.proof.find(jobIdOf(1)), null);
    assert.equal((await models.job.find(jobIdOf(2)))?.status, 'running', 'a running job is kept');
    assert.equal((await models.job.find(jobIdOf(3)))?.status, 'succeeded');
    assert.equal((await models.receipt.find(receiptIdOf(1)))?.jobId, jobIdOf(1), 'kept longer than its job');
    assert.equal((await models.decision.find(decisionIdOf(1)))?.outcome.jobId, jobIdOf(1));
    assert.deepEqual(await models.store.counts(), { jobs: 2, receipts: 2 });
    const { stats } = await models.monitoring.summary(now, DAY_MS);
    assert.deepEqual([stats.total, stats.succeeded, stats.failed, stats.running], [3, 1, 1, 1]);

    const rows = await allRows(db);
    const late: DomainEvent[] = old
      .flatMap(({ events }) => events)
      .filter(({ type }) => type === 'AttemptMade');
    const last = await appendAll(log, [{ stream: old[0]?.stream ?? '', events: late }]);
    await reached(runner, last);
    assert.deepEqual((await allRows(db)).jobs, rows.jobs);
    assert.deepEqual((await allRows(db)).proofs, rows.proofs);
    await runner.stop();
  });

  test("a purger whose clock is ahead of the store's deletes nothing early", async () => {
    const store = await harness.fresh();
    // An embedded store has no clock of its own.
    if (store.disposable) return;
    const log = memoryLog();
    await appendAll(log, jobAppends({ ...PLAN, startedAtMs: Date.now() - 10 * DAY_MS }));
    const db = await project(log, store);
    const clock = { ...systemClock(), now: () => Date.now() + 1000 * DAY_MS };
    const jobsAfter = async (days: number) => {
      const purge = makePurge(
        { clock, logger: collectingLogger(), store },
        { jobs: days * DAY_MS, receipts: null },
      );
      await purge.step(db);
      return (await allRows(db)).jobs?.length;
    };
    assert.deepEqual([await jobsAfter(11), await jobsAfter(9)], [1, 0]);
  });

  test('replayed from the log, all that is gone goes again, and every answer is the same', async () => {
    const store = await harness.fresh();
    const log = memoryLog();
    const now = Date.now();
    for (let day = 0; day < 40; day++) {
      const at = now - (40 - day) * DAY_MS + DAY_MS / 2;
      await appendAll(log, [
        decisionAppend(day, at),
        ...jobAppends({
          ...PLAN,
          seed: day,
          decision: day,
          startedAtMs: at,
          answers: [day % 3 ? 200 : 500],
        }),
      ]);
    }
    const retentionMs = { jobs: 7 * DAY_MS, receipts: 30 * DAY_MS };
    const left = { jobs: 7, receipts: 30 };
    const answers: unknown[] = [];
    for (const _ of ['live', 'replayed']) {
      await dropGenerations(store);
      const runner = runnerOver(log, store, { retentionMs });
      const models = servedBy(runner);
      await reached(runner, await log.head());
      await waitFor('the purge to end', async () => {
        const { jobs, receipts } = await models.store.counts();
        return jobs === left.jobs && receipts === left.receipts;
      });
      const { jobsBefore, receiptsBefore, ...purged } = await retentionOf(await rowsFor(log, store));
      for (const [before, days] of [
        [jobsBefore, 7],
        [receiptsBefore, 30],
      ] as const) {
        const kept = Date.now() - Date.parse(before ?? '');
        assert.ok(kept >= days * DAY_MS && kept < (days + 1) * DAY_MS, `${before}`);
      }
      answers.push([
        await allRows(await rowsFor(log, store)),
        purged,
        await models.monitoring.summary(now, 30 * DAY_MS),
        await models.trust.receipts(instant(now - 50 * DAY_MS)),
      ]);
      await runner.stop();
    }
    assert.deepEqual(answers[1], answers[0]);
  });
}
