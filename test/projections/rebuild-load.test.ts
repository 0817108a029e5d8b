// A rebuild whose service has much to do, or rows of a history that the log no longer has.
import assert from 'node:assert/strict';
import { after, describe, test } from 'node:test';
import postgres from 'postgres';
import { Behind } from '#projections/rebuild-catch-up.ts';
import type { Db } from '#projections/rows.ts';
import { postgresRebuildStore } from '#src/adapters/read-store/postgres-rebuild.ts';
import type { RebuildStore } from '#src/ports/rebuild-store.ts';
import { appendAll, jobAppends, PLAN, recorded } from '#test/support/job-histories.ts';
import { type MemoryLog, memoryLog } from '#test/support/memory-log.ts';
import { needsPostgres } from '#test/support/postgres.ts';
import { asStored, rowsAfter } from '#test/support/read-model-rows.ts';
import { allRows, runnerOver } from '#test/support/read-store.ts';
import {
  leftovers,
  postgresRebuilds,
  project,
  rebuildWith,
  storeBefore,
} from '#test/support/rebuild-world.ts';

const needs = needsPostgres();
const harness = postgresRebuilds(needs);
const PATIENCE_MS = 30_000;

async function addJobs(log: MemoryLog, from: number, count: number): Promise<void> {
  for (let seed = from; seed < from + count; seed++) await appendAll(log, jobAppends({ ...PLAN, seed }));
}

async function given() {
  const { url, store, rebuild } = await harness.fresh();
  const log = memoryLog();
  await addJobs(log, 0, 5);
  await project(log, store);
  return { url, store, rebuild, log, db: await store.open() };
}

/** As PostgreSQL's. Before its first tries to end, a small log being read by then, `happen` comes; and how they ended. */
function storeAtEnd(url: string, happen: (nth: number) => Promise<void>) {
  const FIRST = 11;
  const ends: unknown[] = [];
  const store = postgresRebuildStore({ url });
  let count = 0;
  const watched: RebuildStore<Db> = {
    ...store,
    async transaction(work, isolation) {
      const nth = ++count - FIRST;
      if (nth >= 0) await happen(nth);
      try {
        const value = await store.transaction(work, isolation);
        if (nth >= 0) ends.push(value);
        return value;
      } catch (error) {
        if (nth >= 0) ends.push(error);
        throw error;
      }
    },
  };
  return { store: watched, ends };
}

describe('a rebuild', { ...needs, timeout: 200_000 }, () => {
  after(() => harness.end());

  for (const [title, check] of [
    ['swap', false],
    ['comparison', true],
  ] as const) {
    test(`that is far behind at its end is caught up before the ${title}`, async () => {
      const { url, store, log, db } = await given();
      const last = storeAtEnd(url, async (nth) => {
        if (nth !== 0) return;
        await addJobs(log, 5, 1050);
        await project(log, store, { batchSize: 2000 });
      });
      const { outcome, events } = await rebuildWith(last.store, log, { check });
      assert.ok(last.ends[0] instanceof Behind);
      assert.deepEqual([outcome, events], [check ? 'equal' : 'swapped', log.events.length]);
      assert.deepEqual(await allRows(db), asStored(await rowsAfter(recorded(log))));
      assert.deepEqual(await leftovers(db), []);
    });
  }

  for (const check of [false, true]) {
    test(`is not misled by a service that projects while it begins${check ? ' to compare' : ''}`, async () => {
      const { url, store, log } = await given();
      const grown = storeBefore(url, 4, async () => {
        await addJobs(log, 5, 2);
        await project(log, store);
      });
      const { outcome, position } = await rebuildWith(grown, log, { check });
      assert.deepEqual([outcome, position], [check ? 'equal' : 'swapped', await log.head()]);
    });
  }

  test('folds what came while it waited for the projector before it takes the lock', async () => {
    const { url, store, log, db } = await given();
    const client = postgres(url, { max: 1, onnotice: () => undefined });
    const last = storeAtEnd(url, async (nth) => {
      if (nth === 0) await client`select pg_advisory_lock(125779768603953)`;
      if (nth !== 1) return;
      await client.end({ timeout: 5 });
      await addJobs(log, 5, 10);
      await project(log, store);
    });
    // Told of what is folded without the lock.
    const told: number[] = [];
    await rebuildWith(last.store, log, { onProgress: ({ events }) => told.push(events) });
    assert.equal(last.ends[0], 'busy');
    assert.equal(told.at(-1), log.events.length);
    assert.deepEqual(await allRows(db), asStored(await rowsAfter(recorded(log))));
  });

  test('of a log that was restored from an older backup: a running service goes on by itself after it', async () => {
    const { store, rebuild, log, db } = await given();
    const restored = memoryLog();
    for (const { stream, id, type, data, metadata } of log.events.slice(0, log.events.length / 2))
      await restored.append(stream, 'any', [{ id, type, data, metadata }]);
    await addJobs(restored, 50, 1);
    const runner = runnerOver(restored, store);
    try {
      await assert.rejects(rebuild(restored, { check: true }), /tell what the event log does not have/);
      await rebuild(restored);
      await addJobs(restored, 60, 2);
      assert.ok(await runner.caughtUp((await restored.head()) ?? '', PATIENCE_MS));
      assert.deepEqual(await allRows(db), asStored(await rowsAfter(recorded(restored))));
    } finally {
      await runner.stop();
    }
  });
});
