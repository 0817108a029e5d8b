// Part of the suite over every read store: rows that a version with fewer models has told, before, beside and after
// one with more.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { modelSet, readCheckpoints } from '#projections/checkpoint.ts';
import { READ_MODELS, type ReadModel } from '#projections/registry.ts';
import { type Db, tableShapes } from '#projections/rows.ts';
import type { EventLog } from '#src/ports/event-log.ts';
import type { ReadStore } from '#src/ports/read-store.ts';
import {
  appendAll,
  decisionAppend,
  decisionIdOf,
  histories,
  jobAppends,
  jobIdOf,
  PLAN,
  recorded,
} from './job-histories.ts';
import { type MemoryLog, memoryLog } from './memory-log.ts';
import { asStored, rowsAfter } from './read-model-rows.ts';
import { allRows, emptyRows, type ReadStoreHarness, runnerOver, silent } from './read-store.ts';

/** Only a hanging test meets it. */
const PATIENCE_MS = 20_000;
const options = (harness: ReadStoreHarness) => ({ ...harness.needs, timeout: 120_000 });

/** The models of the first release. */
export const FIRST_MODELS = READ_MODELS.filter(({ name }) => name !== 'decision' && name !== 'transparency');

/** Projects all that the log holds. */
export async function projectWith(
  models: readonly ReadModel[],
  log: EventLog,
  store: ReadStore<Db>,
  batchSize = 200,
  logger = silent,
): Promise<void> {
  const runner = runnerOver(log, store, { models, batchSize, logger });
  const head = await log.head();
  if (head !== null) assert.ok(await runner.caughtUp(head, PATIENCE_MS));
  await runner.stop();
}

/** A decision that was executed, and another that was not. */
export async function decidedLog(): Promise<MemoryLog> {
  const log = memoryLog();
  await appendAll(log, [decisionAppend(1), ...jobAppends({ ...PLAN, decision: 1 }), decisionAppend(2)]);
  return log;
}

export function versionsContract(harness: ReadStoreHarness): void {
  const { name } = harness;

  test(
    `${name}: a new model's rows begin with the log's first event; nothing is projected again for the others`,
    options(harness),
    async () => {
      const store = await harness.fresh();
      const db = await store.open();
      const log = await decidedLog();
      await projectWith(FIRST_MODELS, log, store);
      const before = await allRows(db);
      assert.deepEqual([before.decisions?.length, before.jobs?.length], [0, 1]);
      assert.equal((await readCheckpoints(db)).own('live')?.position, await log.head());

      let again = 0;
      const watched = READ_MODELS.map((model) => ({
        ...model,
        project: (...given: Parameters<ReadModel['project']>) => {
          if (FIRST_MODELS.includes(model)) again++;
          return model.project(...given);
        },
      }));
      await projectWith(watched, log, store, 1);
      assert.equal(again, 0);
      const after = await allRows(db);
      const expected = asStored(await rowsAfter(recorded(log)));
      assert.deepEqual(after, expected);
      for (const { name } of tableShapes(FIRST_MODELS)) assert.deepEqual(after[name], before[name]);
      const told = (after.decisions ?? []) as readonly { decision_id: string; job_id: string | null }[];
      const jobs = new Map(told.map((row) => [row.decision_id, row.job_id]));
      assert.deepEqual([jobs.get(decisionIdOf(1)), jobs.get(decisionIdOf(2))], [jobIdOf(1), null]);
      assert.equal((await readCheckpoints(db)).own(modelSet(READ_MODELS))?.position, await log.head());
    },
  );

  test(
    `${name}: versions that project in turn, back and forth, leave the rows of the pure fold`,
    options(harness),
    async () => {
      const store = await harness.fresh();
      const db = await store.open();
      const turns = fc.array(fc.tuple(fc.boolean(), fc.integer({ min: 1, max: 9 })), {
        minLength: 1,
        maxLength: 5,
      });
      await fc.assert(
        fc.asyncProperty(histories, turns, async (appends, versions) => {
          const log = memoryLog();
          await emptyRows(db);
          for (const [turn, [first, batchSize]] of versions.entries()) {
            const cut = (at: number) => Math.floor((appends.length * at) / versions.length);
            await appendAll(log, appends.slice(cut(turn), cut(turn + 1)));
            await projectWith(first ? FIRST_MODELS : READ_MODELS, log, store, batchSize);
          }
          await projectWith(READ_MODELS, log, store);
          assert.deepEqual(await allRows(db), asStored(await rowsAfter(recorded(log))));
        }),
        { numRuns: 12 },
      );
    },
  );

  test(
    `${name}: versions that project side by side leave the rows of the pure fold`,
    options(harness),
    async () => {
      const store = await harness.fresh();
      const log = memoryLog();
      const runners = [FIRST_MODELS, READ_MODELS].map((models) =>
        runnerOver(log, store, { models, batchSize: 3 }),
      );
      for (let seed = 0; seed < 20; seed++) {
        await appendAll(log, [
          decisionAppend(seed),
          ...jobAppends({ ...PLAN, seed, decision: seed, answers: [500, 200] }),
        ]);
      }
      const head = (await log.head()) ?? '';
      for (const runner of runners) assert.ok(await runner.caughtUp(head, PATIENCE_MS));
      for (const runner of runners) await runner.stop();
      assert.deepEqual(await allRows(await store.open()), asStored(await rowsAfter(recorded(log))));
    },
  );

  test(
    `${name}: rows that were taken back before a new model's first batch are told anew, all of them`,
    options(harness),
    async () => {
      const store = await harness.fresh();
      const db = await store.open();
      const log = await decidedLog();
      await projectWith(FIRST_MODELS, log, store);
      // Between the session's look at the checkpoints and its first batch: while the log is asked for its head.
      let taken = false;
      const slow: EventLog = {
        ...log,
        async head() {
          if (!taken) await emptyRows(db);
          taken = true;
          return log.head();
        },
      };
      const runner = runnerOver(slow, store);
      assert.ok(await runner.caughtUp((await log.head()) ?? '', PATIENCE_MS));
      await runner.stop();
      assert.ok(taken);
      assert.deepEqual(await allRows(db), asStored(await rowsAfter(recorded(log))));
    },
  );

  test(
    `${name}: rows that another version told of another log are never continued`,
    options(harness),
    async () => {
      const store = await harness.fresh();
      const db = await store.open();
      await projectWith(FIRST_MODELS, await decidedLog(), store);
      const before = await allRows(db);
      const other = memoryLog();
      await appendAll(other, jobAppends({ ...PLAN, seed: 8 }));
      const runner = runnerOver(other, store);
      const patience = store.disposable ? PATIENCE_MS : 300;
      assert.equal(await runner.caughtUp((await other.head()) ?? '', patience), store.disposable);
      await runner.stop();
      const expected = store.disposable ? asStored(await rowsAfter(recorded(other))) : before;
      assert.deepEqual(await allRows(db), expected);
    },
  );
}
