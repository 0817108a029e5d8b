// Part of the suite over every read store: rows that somebody deletes are never missing. Reads are refused, and the rows
// are built again; what the purge takes is no loss.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sql } from 'drizzle-orm';
import type { Projector } from '#projections/projector.ts';
import { purgeOnce } from '#projections/purge.ts';
import { READ_MODELS } from '#projections/registry.ts';
import { type Db, tableShapes } from '#projections/rows.ts';
import { findLoss } from '#projections/whole.ts';
import { Fault, isRefused, refused } from '#src/domain/refusal.ts';
import { findForSure } from '#src/http/records.ts';
import type { EventLog } from '#src/ports/event-log.ts';
import type { Logger } from '#src/ports/logger.ts';
import { appendAll, jobAppends, jobIdOf, PLAN, receiptIdOf } from '#test/support/given/job-histories.ts';
import { type MemoryLog, memoryLog } from '#test/support/log/memory-log.ts';
import {
  allRows,
  folded,
  project,
  type ReadStoreHarness,
  rowsFor,
  runnerOver,
  schemaOf,
  servedBy,
  silent,
} from '#test/support/log/read-store.ts';
import { waitFor } from '#test/support/process/service.ts';

const JOBS = [1, 2, 3, 4];
const LOSSES = ['truncate jobs', 'truncate receipts', 'delete from transparency_leaves where leaf_index = 1'];

/** A runner, and what readers are answered for the jobs, as `GET /api/jobs/{id}` is. */
function given(log: MemoryLog, runner: Projector) {
  const models = servedBy(runner);
  const missing = refused('job_not_found', 'There is no such job.');
  const faultOf = (error: unknown) => {
    assert.ok(error instanceof Fault && error.code === 'read_models_unavailable', String(error));
    return null;
  };
  const found = <T extends object>(find: () => Promise<T | null>) =>
    findForSure(runner, find, missing).catch(faultOf);
  const answers = async () => {
    const asked = JOBS.flatMap((seed) => [
      found(() => models.job.find(jobIdOf(seed))),
      found(() => models.receipt.find(receiptIdOf(seed))),
      found(async () => {
        const index = await models.transparency.leafIndex(receiptIdOf(seed));
        return index === null ? null : { index };
      }),
    ]);
    const given = await Promise.all(asked);
    for (const answer of given) assert.ok(answer === null || !isRefused(answer), 'what exists is not found');
    return given.every((answer) => answer !== null);
  };
  const rows = async () => await folded(log);
  return { answers, rows };
}

function warnings() {
  const lines: string[] = [];
  const warn = (message: string, fields?: Readonly<Record<string, unknown>>) =>
    void lines.push(`${message}: ${fields?.loss}`);
  return { logger: { ...silent, warn } satisfies Logger, lines };
}

async function fourJobs(): Promise<MemoryLog> {
  const log = memoryLog();
  for (const seed of JOBS) await appendAll(log, jobAppends({ ...PLAN, seed }));
  return log;
}

/** Not `all`: one loss of each kind. */
export function wholeContract(harness: ReadStoreHarness, { all }: { readonly all: boolean }): void {
  const losses = all ? LOSSES : LOSSES.slice(0, 1);
  const unnoted = [...losses, ...(all ? ['drop table proofs', 'truncate projection'] : [])];

  test('rows that are deleted while a process runs are never missing, and built again', async () => {
    const store = await harness.fresh();
    const log = await fourJobs();
    const { logger, lines } = warnings();
    let gate = Promise.withResolvers<void>();
    gate.resolve();
    const halting: EventLog = {
      ...log,
      async *subscribeAll(from) {
        await gate.promise;
        yield* log.subscribeAll(from);
      },
    };
    const runner = runnerOver(halting, store, { logger });
    const { answers, rows } = given(log, runner);
    await waitFor('the head', () => runner.reachedHead());
    for (const loss of losses) {
      const schema = await schemaOf(log, store);
      assert.equal(await answers(), true);
      assert.equal(runner.state === 'rebuilding', false);
      gate = Promise.withResolvers();
      await (await runner.open()).execute(sql.raw(loss));
      assert.equal(await runner.reachedHead(), false, 'at once');
      assert.equal(await answers(), false);
      await waitFor('the health', () => runner.state === 'rebuilding');
      assert.equal(await answers(), false);
      gate.resolve();
      await waitFor('the rows', answers);
      assert.notEqual(await schemaOf(log, store), schema);
      await waitFor('the health', () => !(runner.state === 'rebuilding'));
      assert.deepEqual(await allRows(await runner.open()), await rows());
    }
    await runner.stop();
    const noted = ['truncate of jobs', 'truncate of receipts', 'delete of transparency_leaves'];
    assert.deepEqual(
      lines,
      losses.map((_, n) => `the read models have lost rows: building new ones: ${noted[n]}`),
    );
  });

  for (const loss of unnoted)
    test(`rows that no trigger saw go are counted before the first read (${loss})`, async () => {
      const store = await harness.fresh();
      const log = await fourJobs();
      const db = await project(log, store);
      await db.transaction(async (tx) => {
        for (const { name: table } of tableShapes(READ_MODELS))
          await tx.execute(sql.raw(`alter table ${table} disable trigger user`));
        await tx.execute(sql.raw(loss));
      });
      const { logger, lines } = warnings();
      const runner = runnerOver(log, store, { logger });
      const { answers, rows } = given(log, runner);
      await waitFor('the rows', answers);
      assert.deepEqual(await allRows(await runner.open()), await rows());
      await runner.stop();
      assert.equal(lines.length, 1, lines.join());
      assert.match(lines[0] ?? '', /^the read models have lost rows: building new ones: /);
    });

  test('a table that is dropped while a process runs is built again with the next event', async () => {
    const store = await harness.fresh();
    const log = await fourJobs();
    const runner = runnerOver(log, store);
    const { answers, rows } = given(log, runner);
    await waitFor('the head', () => runner.reachedHead());
    await (await runner.open()).execute(sql`drop table jobs`);
    await appendAll(log, jobAppends({ ...PLAN, seed: 9 }));
    await waitFor('the rows', async () => (await answers()) && (await runner.reachedHead()));
    assert.deepEqual(await allRows(await runner.open()), await rows());
    await runner.stop();
  });

  test('what a purge takes, and rows that are written again, are no loss', async () => {
    const store = await harness.fresh();
    const log = await fourJobs();
    const db = await project(log, store);
    const schema = (await schemaOf(log, store)) ?? '';
    const loss = (of: Db) => findLoss(of, schema, tableShapes(READ_MODELS), async () => undefined);
    const soon = new Date(PLAN.startedAtMs + 60_000).toISOString();
    const { gone } = await purgeOnce(db, { jobs: soon, receipts: null }, 2);
    assert.ok(gone > 0);
    assert.equal(await loss(db), null);
    await purgeOnce(db, { jobs: soon, receipts: soon });
    assert.equal(await loss(db), null);
    await appendAll(log, jobAppends({ ...PLAN, seed: 9, end: 'interrupted_unknown', answers: [500, 200] }));
    await project(log, store, { batchSize: 1 });
    assert.equal(await loss(await rowsFor(log, store)), null);
    assert.equal(await schemaOf(log, store), schema);
  });
}
