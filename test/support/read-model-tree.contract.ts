// Part of the suite over every read store: the transparency tree grows by each leaf once, whoever projects.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sql } from 'drizzle-orm';
import { judgeEvents, type Projector, projectBatch } from '#projections/batch.ts';
import { modelSet, tryProjectorLock } from '#projections/checkpoint.ts';
import { READ_MODELS, type ReadModel } from '#projections/registry.ts';
import { type Db, tableShapes } from '#projections/rows.ts';
import { transparencyQueries } from '#projections/transparency/query.ts';
import { withTree } from '#projections/with-tree.ts';
import { treeReader } from '#src/domain/transparency/tiles.ts';
import { rootOf } from '#src/domain/transparency/tree.ts';
import { judgeBySignature, recorded } from './job-histories.ts';
import { leafyLog } from './leafy-log.ts';
import { FIRST_MODELS, projectWith } from './read-model-versions.contract.ts';
import { allRows, emptyRows, type ReadStoreHarness, runnerOver } from './read-store.ts';
import { waitFor } from './service.ts';

/** Only a hanging test meets it. */
const PATIENCE_MS = 20_000;
/** Another set of models, with a checkpoint of its own. */
const FEW = READ_MODELS.filter((model) => ['receipt', 'transparency'].includes(model.name));
const options = (harness: ReadStoreHarness) => ({ ...harness.needs, timeout: 120_000 });

export async function treeRowsOf(db: Db): Promise<Record<string, readonly unknown[]>> {
  const all = Object.entries(await allRows(db));
  return Object.fromEntries(all.filter(([table]) => table.startsWith('transparency_')));
}

export function treeContract(harness: ReadStoreHarness): void {
  const { name } = harness;

  test(
    `${name}: the tree's rows are those of the log, told naively: beside older rows, over all borders, twice and anew`,
    options(harness),
    async () => {
      const store = await harness.fresh();
      const db = await store.open();
      const { log, grow, rows, leaves } = leafyLog();
      // A deployment that knew of no tree: its rows stand, and the tree begins with the log's first event.
      await grow(300);
      await projectWith(FIRST_MODELS, log, store);
      await projectWith(READ_MODELS, log, store, 37);
      assert.deepEqual(await treeRowsOf(db), rows());
      await grow(530);
      await projectWith(READ_MODELS, log, store, 113);
      assert.ok(leaves() > 2 * 256, `${leaves()} leaves`);
      assert.deepEqual(await treeRowsOf(db), rows());
      // Every event once more, over the rows that are there.
      await db.execute(sql`delete from checkpoints`);
      await projectWith(READ_MODELS, log, store, 250);
      assert.deepEqual(await treeRowsOf(db), rows());
      await emptyRows(db);
      await projectWith(READ_MODELS, log, store);
      assert.deepEqual(await treeRowsOf(db), rows());
    },
  );

  test(
    `${name}: projectors that overtake each other neither double nor skip a leaf`,
    options(harness),
    async () => {
      const store = await harness.fresh();
      const { log, grow, rows } = leafyLog();
      const start = (batchSize: number, models = READ_MODELS) =>
        runnerOver(log, store, { models, batchSize });
      await grow(40);
      const runners = [start(3), start(7), start(2, FEW)];
      for (let turn = 0; turn < 4; turn++) {
        await grow(35);
        const head = (await log.head()) ?? '';
        await Promise.any(runners.map((runner) => runner.caughtUp(head, PATIENCE_MS)));
        // Whoever it was that projected, one of them goes and another comes.
        await runners.shift()?.stop();
        runners.push(start(2 + turn, turn % 2 === 0 ? FEW : READ_MODELS));
      }
      const head = (await log.head()) ?? '';
      for (const runner of runners) assert.ok(await runner.caughtUp(head, PATIENCE_MS));
      for (const runner of runners) await runner.stop();
      assert.deepEqual(await treeRowsOf(await store.open()), rows());
    },
  );

  test(
    `${name}: who is overtaken by another set of models between two batches goes on with the tree as it is then`,
    options(harness),
    async () => {
      const store = await harness.fresh();
      const db = await store.open();
      const { log, grow, rows } = leafyLog();
      await grow(60);
      const judged = await judgeEvents(recorded(log), judgeBySignature);
      const at = (count: number) => ({
        position: judged[count - 1]?.position ?? '',
        origin: 'first',
        event: null,
      });
      const over = (models: readonly ReadModel[], on: Db): Projector => {
        return { db: on, models, set: modelSet(models), shapes: tableShapes(models) };
      };
      const project = async (by: Projector, from: number, to: number, told = new Map<string, string>()) => {
        const begin = from === 0 ? null : at(from);
        const { outcome } = await projectBatch(by, told, judged.slice(from, to), begin, at(to));
        assert.equal(outcome, 'projected');
      };
      const all = over(READ_MODELS, db);
      const few = over(FEW, db);
      const stood = new Map(FEW.map((model) => [model.name, at(5).position]));
      await project(all, 0, 5);
      await project(few, 0, 5, stood);
      let overtaken = false;
      const transaction: Db['transaction'] = async (...given) => {
        if (!overtaken) await project(few, 5, 30, stood);
        overtaken = true;
        return db.transaction(...given);
      };
      const slow = new Proxy(db, {
        get: (target, key) => (key === 'transaction' ? transaction : Reflect.get(target, key, target)),
      });
      await project(over(READ_MODELS, slow), 5, 40);
      await project(few, 30, judged.length, stood);
      await project(all, 40, judged.length);
      assert.ok(overtaken);
      assert.deepEqual(await treeRowsOf(db), rows());
    },
  );

  test(`${name}: tree, tiles and position are read as of one moment`, options(harness), async () => {
    const store = await harness.fresh();
    const db = await store.open();
    const nothing = await withTree(db, async ({ tree, position }) => ({ tree, position }));
    assert.deepEqual(nothing, { tree: { size: 0, edge: [] }, position: null });
    const { log, grow, leaves, root } = leafyLog();
    await grow(14);
    await projectWith(READ_MODELS, log, store);
    await grow(405);
    await projectWith(READ_MODELS, log, store);
    const head = await log.head();
    assert.equal(log.events.at(-1)?.type, 'Unheard', 'what is no leaf moves the position too');
    const read = await withTree(db, async ({ tree, position, readTile }) => {
      const reader = treeReader(readTile);
      const roots = [rootOf(tree), await reader.root(0, tree.size), await reader.root(0, 9)];
      return { size: tree.size, position, roots: roots.map((hash) => Buffer.from(hash)) };
    });
    const expected = [root(), root(), root(9)].map((hash) => Buffer.from(hash));
    assert.deepEqual(read, { size: leaves(), position: head, roots: expected });
    const failure = new Error('the work failed');
    await assert.rejects(
      withTree(db, () => Promise.reject(failure)),
      failure,
    );
    const rows = transparencyQueries(db);
    assert.equal((await rows.tile('entries', 0))?.length, 256 * 32);
    assert.deepEqual([await rows.tile(0, 2), await rows.tile(1, 1)], [null, null]);
    // A row that was lost leaves a short tile, never one of hashes in wrong places.
    const whole = await rows.tile(0, 0);
    await db.execute(sql`delete from transparency_tiles where id = '0/0/5'`);
    assert.deepEqual(await rows.tile(0, 0), whole?.slice(0, 5 * 16 * 32));
    await db.execute(sql`delete from transparency_tiles where id = '0/0/0'`);
    assert.equal(await rows.tile(0, 0), null);
  });

  // The embedded store has one connection, and nobody to be kept out.
  if (name === 'pglite') return;

  test(
    `${name}: while the tree is read nobody projects, and while somebody projects it is not read`,
    options(harness),
    async () => {
      const store = await harness.fresh();
      const db = await store.open();
      const { log, grow, rows, leaves } = leafyLog();
      await grow(20);
      const runner = runnerOver(log, store);
      assert.ok(await runner.caughtUp((await log.head()) ?? '', PATIENCE_MS));
      assert.equal(runner.role(), 'projects');
      const before = leaves();
      const size = await withTree(db, async ({ tree }) => {
        await grow(10);
        await waitFor('the runner to give way', () => runner.role() === 'follows');
        assert.equal(await withTree(db, async () => 'read'), 'busy');
        return tree.size;
      });
      assert.equal(size, before);
      assert.ok(await runner.caughtUp((await log.head()) ?? '', PATIENCE_MS));
      assert.equal(runner.role(), 'projects');
      await runner.stop();
      assert.equal(runner.role(), null);
      assert.deepEqual(await treeRowsOf(db), rows());
      const held = await db.transaction(async (tx) => {
        assert.equal(await tryProjectorLock(tx), true);
        return withTree(db, async () => 'read');
      });
      assert.equal(held, 'busy');
    },
  );
}
