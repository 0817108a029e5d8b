// Part of the suite over every read store: a log that was restored from a backup older than the rows.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sql } from 'drizzle-orm';
import { readCheckpoints } from '#projections/checkpoint.ts';
import { eventMark } from '#projections/last-event.ts';
import { READ_MODELS } from '#projections/registry.ts';
import type { Db } from '#projections/rows.ts';
import type { EventLog } from '#src/ports/event-log.ts';
import { collectingLogger } from './fakes.ts';
import { appendAll, jobAppends, PLAN, recorded } from './job-histories.ts';
import { type MemoryLog, memoryLog } from './memory-log.ts';
import { asStored, rowsAfter } from './read-model-rows.ts';
import { FIRST_MODELS, projectWith } from './read-model-versions.contract.ts';
import { allRows, emptyRows, type ReadStoreHarness, runnerOver } from './read-store.ts';
import { waitFor } from './service.ts';

/** Only a hanging test meets it. */
const PATIENCE_MS = 20_000;
const options = (harness: ReadStoreHarness) => ({ ...harness.needs, timeout: 120_000 });

async function addJobs(log: MemoryLog, from: number, to: number): Promise<void> {
  for (let seed = from; seed < to; seed++) await appendAll(log, jobAppends({ ...PLAN, seed }));
}

/** A log that begins with the oldest events of the other. */
async function backupOf(log: MemoryLog, events: number): Promise<MemoryLog> {
  const backup = memoryLog();
  for (const { stream, id, type, data, metadata } of log.events.slice(0, events))
    await backup.append(stream, 'any', [{ id, type, data, metadata }]);
  return backup;
}

export function aheadContract(harness: ReadStoreHarness): void {
  const { name } = harness;

  for (const [what, left, more, message, remedy] of [
    // Their positions are at or before those of the rows.
    ['a part', 0.5, 2, 'the read models are ahead of the event log', 'rebuild them'],
    [
      'a part, grown beyond the rows since,',
      0.5,
      8,
      'the read models tell events that the event log does not have',
      'rebuild them',
    ],
    [
      'nothing',
      0,
      0,
      'the read models are of another event log',
      'check the configuration, or rebuild them with --other-log',
    ],
  ] as const)
    test(
      `${name}: where ${what} is left of the log that the rows tell, they are never continued`,
      options(harness),
      async () => {
        const store = await harness.fresh();
        const db = await store.open();
        const log = memoryLog();
        await addJobs(log, 0, 8);
        await projectWith(FIRST_MODELS, log, store);
        const before = await allRows(db);
        const restored = await backupOf(log, log.events.length * left);
        await addJobs(restored, 100, 100 + more);
        assert.equal(((await restored.head()) ?? '') > ((await log.head()) ?? ''), more === 8);
        const logger = collectingLogger();
        const runner = runnerOver(restored, store, { logger });
        if (store.disposable) {
          const expected = asStored(await rowsAfter(recorded(restored)));
          assert.equal(await runner.ready(), true);
          assert.equal(runner.refused(), false);
          await waitFor('the replay', async () => (await allRows(db)).jobs?.length === expected.jobs?.length);
          await runner.stop();
          assert.deepEqual(await allRows(db), expected);
          assert.deepEqual(logger.lines, [
            { level: 'warn', message: `${message}: replaying them`, fields: undefined },
          ]);
        } else {
          assert.equal(await runner.ready(), false);
          assert.equal(runner.refused(), true);
          // Of an empty log nothing is to be reached.
          assert.equal(await runner.reachedHead(), left === 0);
          await runner.stop();
          assert.deepEqual(await allRows(db), before);
          const cause = new Error(`${message}: ${remedy}`);
          assert.deepEqual(
            logger.lines.map(({ level, message, fields }) => [level, message, String(causeOf(fields))]),
            [['warn', 'the read models stand still', String(cause)]],
          );
        }
      },
    );

  const onShared = name === 'postgres' ? test : () => undefined;
  onShared(
    `${name}: rows that are refused stay so while the log grows past them, until they fit`,
    options(harness),
    async () => {
      const store = await harness.fresh();
      const db = await store.open();
      const log = memoryLog();
      await addJobs(log, 0, 4);
      await projectWith(READ_MODELS, log, store);
      const before = await allRows(db);
      const restored = await backupOf(log, log.events.length / 2);
      let looks = 0;
      const watched = {
        ...restored,
        async head() {
          looks++;
          return restored.head();
        },
      };
      const runner = runnerOver(watched, store);
      await waitFor('the refusal', () => runner.refused());
      await addJobs(restored, 100, 108);
      looks = 0;
      await waitFor('two looks more', () => looks >= 2);
      assert.deepEqual([runner.refused(), runner.position(), runner.role()], [true, null, null]);
      assert.deepEqual(await allRows(db), before);
      await emptyRows(db);
      assert.ok(await runner.caughtUp((await restored.head()) ?? '', PATIENCE_MS));
      assert.equal(runner.refused(), false);
      await runner.stop();
      assert.deepEqual(await allRows(db), asStored(await rowsAfter(recorded(restored))));
    },
  );

  test(
    `${name}: rows of a version that named no event are gone on with, and name theirs from then on`,
    options(harness),
    async () => {
      const store = await harness.fresh();
      const db = await store.open();
      const log = memoryLog();
      await addJobs(log, 0, 2);
      await projectWith(READ_MODELS, log, store);
      await db.execute(sql`update checkpoints set "event" = null`);
      const logger = collectingLogger();
      const runner = runnerOver(log, store, { logger });
      await addJobs(log, 2, 3);
      assert.ok(await runner.caughtUp((await log.head()) ?? '', PATIENCE_MS));
      await runner.stop();
      assert.deepEqual(logger.lines, []);
      const last = log.events.at(-1) ?? assert.fail();
      assert.deepEqual(
        (await readCheckpoints(db)).all.map(({ event }) => event),
        [eventMark(last)],
      );
      assert.deepEqual(await allRows(db), asStored(await rowsAfter(recorded(log))));
    },
  );

  test(
    `${name}: rows that a process has followed answer no more once a log behind them is found, until they fit`,
    options(harness),
    async () => {
      const store = await harness.fresh();
      const real = await store.open();
      const log = memoryLog();
      await addJobs(log, 0, 4);
      const restored = await backupOf(log, log.events.length / 2);
      // Another handle begins another session.
      let world: { readonly log: EventLog; readonly db: Db } = { log, db: real };
      const changing: EventLog = {
        ...log,
        head: () => world.log.head(),
        readAll: (given) => world.log.readAll(given),
        subscribeAll: (given) => world.log.subscribeAll(given),
      };
      const lookedAt = { disposable: store.disposable, open: async () => world.db };
      const logger = collectingLogger();
      const runner = runnerOver(changing, lookedAt, { logger });
      assert.ok(await runner.caughtUp((await log.head()) ?? '', PATIENCE_MS));
      assert.equal(await runner.ready(), true);
      world = { log: restored, db: new Proxy(real, {}) };
      await waitFor('the look', () => logger.lines.length > 0);
      if (!store.disposable) {
        assert.deepEqual([await runner.ready(), await runner.reachedHead()], [false, false]);
        assert.equal(runner.position(), null);
        await emptyRows(real);
      }
      const head = await restored.head();
      await waitFor('the replay', () => runner.position() === head);
      assert.deepEqual([await runner.ready(), await runner.reachedHead()], [true, true]);
      await runner.stop();
      assert.deepEqual(await allRows(real), asStored(await rowsAfter(recorded(restored))));
    },
  );
}

const causeOf = (fields: unknown): unknown =>
  typeof fields === 'object' && fields !== null && 'cause' in fields ? fields.cause : null;
