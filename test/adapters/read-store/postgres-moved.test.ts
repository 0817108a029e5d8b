// Rows of a shared store that another process replaces, or goes on with, while this one has nothing to do: no event says so.
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { modelSet, readCheckpoint } from '#projections/checkpoint.ts';
import { READ_MODELS, type ReadModel } from '#projections/registry.ts';
import type { EventLog } from '#src/ports/event-log.ts';
import { collectingLogger } from '#test/support/fakes.ts';
import { appendAll, jobAppends, PLAN, recorded } from '#test/support/job-histories.ts';
import { memoryLog } from '#test/support/memory-log.ts';
import { needsPostgres } from '#test/support/postgres.ts';
import { asStored, rowsAfter } from '#test/support/read-model-rows.ts';
import { projectWith } from '#test/support/read-model-versions.contract.ts';
import { allRows, emptyRows, postgresHarness, runnerOver } from '#test/support/read-store.ts';
import { waitFor } from '#test/support/service.ts';

const PATIENCE_MS = 20_000;
const needs = { ...needsPostgres(), timeout: 120_000 };
const harness = postgresHarness(needs);
after(() => harness.end());

async function logOf(...seeds: readonly number[]) {
  const log = memoryLog();
  for (const seed of seeds) await appendAll(log, jobAppends({ ...PLAN, seed }));
  return log;
}

test(
  'postgres: an idle process sees rows of another log put in place of its own, at the very same position',
  needs,
  async () => {
    const store = await harness.fresh();
    const db = await store.open();
    const log = await logOf(1, 2);
    const other = await logOf(3, 4);
    const logger = collectingLogger();
    const runner = runnerOver(log, store, { logger });
    assert.equal(await other.head(), await log.head());
    assert.ok(await runner.caughtUp((await log.head()) ?? '', PATIENCE_MS));
    await db.transaction(async (tx) => {
      await emptyRows(tx);
      await projectWith(READ_MODELS, other, { ...store, open: async () => tx });
    });
    await waitFor('the look', () => runner.position() === null);
    assert.deepEqual([await runner.reachedHead(), await runner.ready()], [false, false]);
    const before = await allRows(db);
    assert.deepEqual(before, asStored(await rowsAfter(recorded(other))));
    assert.deepEqual(
      logger.lines.map(({ message }) => message),
      ['the read models stand still'],
    );
    await runner.stop();
  },
);

for (const [what, batchSize] of [
  ['are taken away', null],
  ['go back', 3],
] as const)
  test(`postgres: an idle process tells rows anew that ${what} under it`, needs, async () => {
    const store = await harness.fresh();
    const db = await store.open();
    const log = await logOf(1, 2);
    const head = (await log.head()) ?? '';
    const runner = runnerOver(log, store);
    assert.ok(await runner.caughtUp(head, PATIENCE_MS));
    await db.transaction(async (tx) => {
      await emptyRows(tx);
      if (batchSize === null) return;
      const part = await logOf(1);
      // The same log, when it was shorter.
      const events = log.events.slice(0, part.events.length);
      const shorter: EventLog = {
        ...log,
        head: async () => events.at(-1)?.position ?? null,
        async *subscribeAll({ signal }) {
          for (const event of events) yield { kind: 'event', event };
          yield { kind: 'caught_up' };
          await new Promise((resolve) => signal.addEventListener('abort', () => resolve(null)));
        },
      };
      await projectWith(READ_MODELS, shorter, { ...store, open: async () => tx }, batchSize);
    });
    const expected = asStored(await rowsAfter(recorded(log)));
    assert.notDeepEqual(await allRows(db), expected);
    const told = async () => (await readCheckpoint(db, modelSet(READ_MODELS)))?.position;
    await waitFor('the rows', async () => (await told()) === head, { limitMs: PATIENCE_MS });
    await runner.stop();
    assert.equal(runner.position(), head);
    assert.deepEqual(await allRows(db), expected);
  });

test(
  'postgres: an idle process sees how far another has come, and tells nothing twice that its log delivers later',
  needs,
  async () => {
    const store = await harness.fresh();
    const db = await store.open();
    const log = await logOf(1);
    const first = (await log.head()) ?? '';
    const late = Promise.withResolvers<void>();
    const slow: EventLog = {
      ...log,
      async *subscribeAll(from) {
        for await (const message of log.subscribeAll(from)) {
          if (message.kind === 'event' && message.event.position > first) await late.promise;
          yield message;
        }
      },
    };
    let projected = 0;
    const models = READ_MODELS.map((model) => ({
      ...model,
      project(...given: Parameters<ReadModel['project']>) {
        if (model.name === 'job') projected++;
        return model.project(...given);
      },
    }));
    const runner = runnerOver(slow, store, { models });
    assert.ok(await runner.caughtUp(first, PATIENCE_MS));
    const head = (await appendAll(log, jobAppends({ ...PLAN, seed: 2 }))) ?? '';
    const [ours, before] = [projected, log.events.length];
    await projectWith(READ_MODELS, log, store);
    await waitFor('the look', () => runner.position() === head);
    late.resolve();
    const last = (await appendAll(log, jobAppends({ ...PLAN, seed: 3 }))) ?? '';
    assert.ok(await runner.caughtUp(last, PATIENCE_MS));
    await runner.stop();
    assert.equal(projected, ours + log.events.length - before);
    assert.equal((await readCheckpoint(db, modelSet(READ_MODELS)))?.position, last);
    assert.deepEqual(await allRows(db), asStored(await rowsAfter(recorded(log))));
  },
);
