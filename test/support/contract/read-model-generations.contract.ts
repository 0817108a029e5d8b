// Part of the suite over every read store: generations. No row of another log, or of a history that the log no longer has,
// is ever shown; another release has read models of its own.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sql } from 'drizzle-orm';
import { markUsed, pruneGenerations, retire } from '#projections/generations.ts';
import type { ModelRow, ReadModel } from '#projections/model.ts';
import { READ_MODELS } from '#projections/registry.ts';
import { type Db, rowsOf } from '#projections/rows.ts';
import { systemClock } from '#src/adapters/runtime/clock.ts';
import { Fault } from '#src/domain/refusal.ts';
import { checkpointSigned } from '#test/support/given/given-events.ts';
import { appendAll, jobAppends, jobIdOf, PLAN } from '#test/support/given/job-histories.ts';
import { memoryLog } from '#test/support/log/memory-log.ts';
import {
  allRows,
  assertFolded,
  folded,
  project,
  type ReadStoreHarness,
  reached,
  rowsFor,
  runnerOver,
  schemaOf,
  servedBy,
} from '#test/support/log/read-store.ts';
import { waitFor } from '#test/support/process/service.ts';

const job = (seed: number) => jobAppends({ ...PLAN, seed });

/** The models of another release: its job rows have another mode. */
const OTHER_RELEASE: readonly ReadModel[] = READ_MODELS.map((model) => {
  if (model.name !== 'job') return model;
  const marked = (row: ModelRow | null) => row && { ...row, mode: 'of the other release' };
  const change: ReadModel['project'] = (...given) =>
    model.project(...given).map((one) => ({ ...one, apply: (row) => marked(one.apply(row)) }));
  return { ...model, version: model.version + 1, project: change };
});

const modesOf = async (db: Db) =>
  new Set(((await allRows(db)).jobs ?? []).map((row) => (row as { mode: string }).mode));

const unavailable = (error: unknown) => error instanceof Fault && error.code === 'read_models_unavailable';

export function generationContract(harness: ReadStoreHarness): void {
  test('jobs of another log are never shown', async () => {
    const store = await harness.fresh();
    const first = memoryLog();
    await appendAll(first, job(1));
    await project(first, store);
    const second = memoryLog();
    await appendAll(second, [...job(8), ...job(9)]);
    const runner = runnerOver(second, store);
    const models = servedBy(runner);
    // As soon as rows can be read, not only once they have caught up.
    const isOpen = () => runner.open().then(Boolean, () => false);
    await waitFor('a generation', isOpen);
    assert.equal(await models.job.find(jobIdOf(1)), null);
    await waitFor('the head', () => runner.reachedHead());
    assert.equal(await models.job.find(jobIdOf(1)), null);
    assert.equal((await models.job.find(jobIdOf(8)))?.status, 'succeeded');
    assert.deepEqual(await models.store.counts(), { jobs: 2, receipts: 2 });
    await runner.stop();
    await assertFolded(second, store);
    // A shared store serves both; an embedded one builds again what it serves.
    assert.equal((await schemaOf(first, store)) !== null, !store.disposable);
    assert.deepEqual(await allRows(await project(first, store)), await folded(first));
  });

  for (const [what, later] of [
    ['continued differently', [5, 6, 7]],
    ['has not continued', []],
  ] as const)
    test(`a log was restored from a backup and ${what}: no job of the lost history is shown at the next start`, async () => {
      const store = await harness.fresh();
      const log = memoryLog();
      await appendAll(log, job(1));
      const backup = log.events.length;
      await appendAll(log, [...job(2), { stream: 'keys-relay', events: [checkpointSigned()] }]);
      await project(log, store);
      log.restore(backup);
      for (const seed of later) await appendAll(log, job(seed));
      const runner = runnerOver(log, store);
      const models = servedBy(runner);
      const seen: unknown[] = [];
      const find = () =>
        models.job.find(jobIdOf(2)).then(
          (found) => void seen.push(found),
          (error) => assert.ok(unavailable(error)),
        );
      for (; !(await runner.reachedHead()); await systemClock().sleep(10)) await find();
      await find();
      assert.deepEqual(new Set(seen), new Set([null]));
      assert.equal((await models.job.find(jobIdOf(1)))?.status, 'succeeded');
      assert.deepEqual(await models.store.counts(), { jobs: 1 + later.length, receipts: 1 + later.length });
      const expected = await folded(log);
      assert.deepEqual(await allRows(await rowsFor(log, store)), expected);
      // The checkpoint that was signed over the lost history is not forgotten with its rows, unless those are disposable.
      const kept = store.disposable ? [] : [checkpointSigned().data.note];
      assert.deepEqual(runner.checkpointsElsewhere(), kept);
      await runner.stop();
    });

  test('a log that is restored while the process runs: nothing of the lost history is shown once it is back', async () => {
    const store = await harness.fresh();
    const log = memoryLog();
    await appendAll(log, job(1));
    const backup = log.events.length;
    const runner = runnerOver(log, store);
    const models = servedBy(runner);
    await appendAll(log, job(2));
    await waitFor('the head', () => runner.reachedHead());
    assert.equal((await models.job.find(jobIdOf(2)))?.status, 'succeeded');
    // Recorded, and not yet projected, as the log fails: no batch mixes two histories.
    await appendAll(log, job(3));
    log.setAway(true);
    log.restore(backup);
    await appendAll(log.again(), [...job(4), ...job(5), ...job(6)]);
    log.setAway(false);
    await waitFor('the interruption is noticed', () => runner.role() === null || runner.position() === null);
    for (let reached = false; !reached; reached = await runner.reachedHead()) {
      const found = await models.job.find(jobIdOf(2)).catch((error) => {
        assert.ok(unavailable(error));
        return null;
      });
      assert.equal(found, null);
    }
    assert.deepEqual(await models.store.counts(), { jobs: 4, receipts: 4 });
    await runner.stop();
    await assertFolded(log, store);
  });

  test('a restored log whose interruption no process noticed: no event of it is projected over the lost history', async () => {
    const store = await harness.fresh();
    const log = memoryLog();
    await appendAll(log, job(1));
    const backup = log.events.length;
    await appendAll(log, job(2));
    const runner = runnerOver(log, store);
    await waitFor('the head', () => runner.reachedHead());
    log.restore(backup);
    for (const seed of [4, 5, 6]) await appendAll(log, job(seed));
    await waitFor('the head', async () => runner.reachedHead());
    await runner.stop();
    await assertFolded(log, store);
  });

  test('an interruption of the log alone keeps the rows, and the events after it', async () => {
    const store = await harness.fresh();
    const log = memoryLog();
    await appendAll(log, job(1));
    const runner = runnerOver(log, store);
    await waitFor('the head', () => runner.reachedHead());
    const schema = await schemaOf(log, store);
    log.setAway(true);
    assert.equal(await runner.reachedHead(), false);
    await appendAll(log.again(), job(2));
    log.setAway(false);
    await reached(runner, await log.head());
    await runner.stop();
    assert.equal(await schemaOf(log, store), schema);
    await assertFolded(log, store);
  });

  // An embedded store serves one process, which drops what is not its own.
  if (harness.name === 'pglite') return;

  test('a lost history is found before the rows are counted: new calls wait for it', async () => {
    const store = await harness.fresh();
    const log = memoryLog();
    await appendAll(log, job(1));
    const backup = log.events.length;
    await appendAll(log, [...job(2), { stream: 'keys-relay', events: [checkpointSigned()] }]);
    await project(log, store);
    log.restore(backup);
    const mayCount = Promise.withResolvers<void>();
    /** Rows are counted in one snapshot: a transaction with options. */
    const slow = (db: Db) =>
      new Proxy(db, {
        get(target, property) {
          if (property !== 'transaction') return Reflect.get(target, property, target);
          const transaction: Db['transaction'] = (work, config) =>
            (config === undefined ? Promise.resolve() : mayCount.promise).then(() =>
              target.transaction(work, config),
            );
          return transaction;
        },
      });
    const handles = new Map<Db, Db>();
    const open = async (schema: string) => {
      const db = await store.open(schema);
      return handles.get(db) ?? handles.set(db, slow(db)).get(db) ?? db;
    };
    const runner = runnerOver(log, { ...store, open });
    let notes: readonly string[] | null = null;
    await waitFor('the comparison', async () => {
      notes = await runner.compared();
      return notes !== null;
    });
    assert.deepEqual(notes, [checkpointSigned().data.note]);
    await assert.rejects(runner.open(), unavailable, 'no row is read before it is counted');
    mayCount.resolve();
    await waitFor('the head', () => runner.reachedHead());
    await runner.stop();
  });

  test('another release projects into a generation of its own while this one serves', async () => {
    const [store, other] = [await harness.fresh(), await harness.again()];
    const log = memoryLog();
    await appendAll(log, job(1));
    const ours = runnerOver(log, store);
    const theirs = runnerOver(log, other, { models: OTHER_RELEASE });
    for (const seed of [2, 3, 4]) {
      await appendAll(log, job(seed));
      await waitFor('the head', () => ours.reachedHead());
      await waitFor('the head', () => theirs.reachedHead());
    }
    assert.deepEqual(await modesOf(await ours.open()), new Set(['demo']));
    assert.deepEqual(await modesOf(await theirs.open()), new Set(['of the other release']));
    await Promise.all([ours.stop(), theirs.stop()]);
  });

  test('processes that start at once share one generation', async () => {
    const stores = [await harness.fresh(), await harness.again(), await harness.again()];
    const log = memoryLog();
    await appendAll(log, [...job(1), ...job(2)]);
    const runners = stores.map((store) => runnerOver(log, store, { batchSize: 3 }));
    for (const runner of runners) await waitFor('the head', () => runner.reachedHead());
    for (const runner of runners) await runner.stop();
    const [store] = stores;
    assert.ok(store);
    const made = await rowsOf(await store.shared(), sql`select 1 from read_model_generations`);
    assert.equal(made.length, 1);
    await assertFolded(log, store);
  });

  test('a reader on a process that does not project gets what was just recorded at once', async () => {
    const [store, other] = [await harness.fresh(), await harness.again()];
    const log = memoryLog();
    await appendAll(log, job(1));
    const projecting = runnerOver(log, store);
    await waitFor('the head', () => projecting.reachedHead());
    const following = runnerOver(log, other);
    await waitFor('the head', () => following.reachedHead());
    const took: number[] = [];
    for (let seed = 2; seed < 12; seed++) {
      await appendAll(log, job(seed));
      const begun = performance.now();
      await waitFor('the head', () => following.reachedHead());
      const { store: counts } = servedBy(following);
      assert.equal((await counts.counts()).jobs, seed);
      took.push(performance.now() - begun);
    }
    // Looking every second would make nine of them that slow; a busy machine may make some of them.
    assert.ok(took.filter((ms) => ms < 900).length >= 4, took.join());
    await Promise.all([projecting.stop(), following.stop()]);
  });

  test('pruning drops what no process uses, and nothing that is used', async () => {
    const store = await harness.fresh();
    const shared = await store.shared();
    const logs = [memoryLog(), memoryLog(), memoryLog()];
    const schemas: string[] = [];
    for (const log of logs) {
      await appendAll(log, job(1));
      await project(log, store);
      schemas.push((await schemaOf(log, store)) ?? '');
    }
    const [own = '', used = '', unused = ''] = schemas;
    await shared.execute(sql`update read_model_generations set used_at = now() - interval '1 hour'`);
    await markUsed(shared, used);
    assert.deepEqual(await shared.transaction((tx) => pruneGenerations(tx, own, 1_800_000)), [unused]);
    const left = await rowsOf<{ name: string }>(
      shared,
      sql`select nspname as name from pg_namespace where nspname like 'relay\\_%' order by 1`,
    );
    assert.deepEqual(
      left.map((row) => row.name),
      [own, used].sort(),
    );
    const prune = (options: { readonly lost?: boolean }) =>
      shared.transaction((tx) => pruneGenerations(tx, own, 1_800_000, options));
    const log = logs[1] ?? assert.fail();
    for (const state of ['lost', 'incomplete'] as const) {
      const schema = (await schemaOf(log, store)) ?? '';
      await shared.transaction((tx) => retire(tx, schema, state));
      assert.deepEqual([await prune({}), await prune({ lost: true })], [[], [`${schema}_${state}`]]);
      await rowsFor(log, store);
    }
  });
}
