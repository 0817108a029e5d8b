// Where a batch may end: never in the middle of an append, or a job is seen completed and yet without its receipt.
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { readModels } from '#projections/read-models.ts';
import type { Db } from '#projections/rows.ts';
import { systemClock } from '#src/adapters/runtime/clock.ts';
import type { EventLog } from '#src/ports/event-log.ts';
import { appendAll, jobAppends, jobIdOf, newEvent, PLAN } from '#test/support/job-histories.ts';
import { memoryLog } from '#test/support/memory-log.ts';
import { pgliteHarness, runnerOver } from '#test/support/read-store.ts';
import { waitFor } from '#test/support/service.ts';

const PATIENCE_MS = 20_000;
const slow = { timeout: 120_000 };
const harness = pgliteHarness();
after(() => harness.end());

/** Ends of a job's story at which no batch may leave its rows. */
async function halfClosed(db: Db): Promise<readonly string[]> {
  const models = readModels({ open: async () => db }, systemClock(), async () => true);
  const proofs = await models.proof.recent(50);
  return proofs
    .filter(({ status, receiptId }) => status !== 'running' && receiptId === null)
    .map(({ jobId }) => jobId);
}

/** Looks at the rows after every statement. */
async function watched() {
  const store = await harness.fresh();
  const seen: (readonly string[])[] = [];
  const open = async (schema: string) => {
    const real = await store.open(schema);
    const execute: Db['execute'] = (...given) => {
      const result = real.execute(...given);
      void result.then(async () => seen.push(await halfClosed(real)));
      return result;
    };
    handle ??= new Proxy(real, {
      get: (target, name) => (name === 'execute' ? execute : Reflect.get(target, name, target)),
    });
    return handle;
  };
  let handle: Db | null = null;
  return { seen, store: { ...store, open } };
}

/** Events of one append come as messages of their own, one by one, some time apart: as from EventStoreDB. */
function trickling(log: EventLog, pauseMs: number): EventLog {
  return {
    ...log,
    async *subscribeAll(from) {
      for await (const message of log.subscribeAll(from)) {
        if (message.kind === 'event') await systemClock().sleep(pauseMs);
        yield message;
      }
    },
  };
}

for (const [how, pauseMs, batchSize] of [
  ['one by one, some milliseconds apart', 3, 200],
  ['all at once, in the smallest batches', 0, 1],
  ['all at once, in batches that end somewhere', 0, 4],
] as const) {
  test(
    `append: its events come ${how}, and no transaction shows a completion without its receipt`,
    slow,
    async () => {
      const { seen, store } = await watched();
      const log = memoryLog();
      const plans = Array.from({ length: 12 }, (_, seed) =>
        jobAppends({ ...PLAN, seed, answers: [500, 503, 200] }),
      );
      for (const plan of plans.slice(0, 6)) await appendAll(log, plan);
      const runner = runnerOver(pauseMs === 0 ? log : trickling(log, pauseMs), store, { batchSize });
      for (const plan of plans.slice(6)) await appendAll(log, plan);
      assert.ok(await runner.caughtUp((await log.head()) ?? '', PATIENCE_MS));
      await runner.stop();
      assert.ok(seen.length > 3);
      assert.deepEqual(seen.flat(), []);
    },
  );
}

test(
  'append: a completion whose receipt never comes is projected all the same, last in the log or not',
  slow,
  async () => {
    const { store } = await watched();
    const log = memoryLog();
    const runner = runnerOver(log, store);
    const models = readModels(runner, systemClock(), runner.ready);
    for (const seed of [1, 2]) {
      const appends = jobAppends({ ...PLAN, seed });
      const cut = appends.map(({ stream, events }) => ({
        stream,
        events: events.filter(({ type }) => type !== 'ReceiptSigned'),
      }));
      const last = await appendAll(log, cut);
      assert.ok(await runner.caughtUp(last ?? '', PATIENCE_MS));
      assert.equal((await models.job.find(jobIdOf(seed)))?.status, 'succeeded');
    }
    await log.append('job-other', 'no_stream', [newEvent({ type: 'SomethingElse', data: {} })]);
    await waitFor('the last event', async () => runner.position() === (await log.head()));
    assert.deepEqual((await halfClosed(await runner.open())).length, 2);
    await runner.stop();
  },
);
