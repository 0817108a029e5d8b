// Part of the suite over every read store: the transparency tree grows by each leaf once, whichever process projects.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sql } from 'drizzle-orm';
import type { Db } from '#projections/rows.ts';
import { transparencyQueries } from '#projections/transparency/query.ts';
import { withTree } from '#projections/with-tree.ts';
import { treeReader } from '#src/domain/transparency/tiles.ts';
import { rootOf } from '#src/domain/transparency/tree.ts';
import { leafyLog } from '#test/support/log/leafy-log.ts';
import {
  allRows,
  dropGenerations,
  project,
  type ReadStoreHarness,
  reached,
  rowsFor,
  runnerOver,
} from '#test/support/log/read-store.ts';

/** Only a hanging test meets it. */
const PATIENCE_MS = 100_000;

export async function treeRowsOf(db: Db): Promise<Record<string, readonly unknown[]>> {
  const all = Object.entries(await allRows(db));
  return Object.fromEntries(all.filter(([table]) => table.startsWith('transparency_')));
}

export function treeContract(harness: ReadStoreHarness): void {
  test("the tree's rows are those of the log, computed naively: over all borders, and after a replay", async () => {
    const store = await harness.fresh();
    const { log, grow, rows, leaves } = leafyLog();
    await grow(300);
    assert.deepEqual(await treeRowsOf(await project(log, store, { batchSize: 37 })), rows());
    await grow(530);
    const db = await project(log, store, { batchSize: 113 });
    assert.ok(leaves() > 2 * 256, `${leaves()} leaves`);
    assert.deepEqual(await treeRowsOf(db), rows());
    // Every event once more, over the rows that are there.
    await db.execute(sql`update projection set position = null, event = null, version = version + 1`);
    assert.deepEqual(await treeRowsOf(await project(log, store, { batchSize: 250 })), rows());
    await dropGenerations(store);
    assert.deepEqual(await treeRowsOf(await project(log, store)), rows());
  });

  test('projectors that overtake each other neither double nor skip a leaf', async () => {
    const store = await harness.fresh();
    const { log, grow, rows } = leafyLog();
    const start = (batchSize: number) => runnerOver(log, store, { batchSize });
    await grow(40);
    const runners = [start(3), start(7), start(2)];
    for (let turn = 0; turn < 4; turn++) {
      await grow(35);
      const head = (await log.head()) ?? '';
      await Promise.any(runners.map((runner) => runner.caughtUp(head, PATIENCE_MS)));
      // Whichever process projected, one of them ends and another starts.
      await runners.shift()?.stop();
      runners.push(start(2 + turn));
    }
    const head = (await log.head()) ?? '';
    for (const runner of runners) await reached(runner, head);
    for (const runner of runners) await runner.stop();
    assert.deepEqual(await treeRowsOf(await rowsFor(log, store)), rows());
  });

  test('tree, tiles and position are read as of one moment', async () => {
    const store = await harness.fresh();
    const { log, grow, leaves, root } = leafyLog();
    await grow(14);
    const db = await rowsFor(log, store);
    const nothing = await withTree(db, async ({ tree, position }) => ({ tree, position }));
    assert.deepEqual(nothing, { tree: { size: 0, edge: [] }, position: null });
    await project(log, store);
    await grow(405);
    await project(log, store);
    const head = await log.head();
    assert.equal(log.events.at(-1)?.type, 'DecisionRecorded', 'what is no leaf moves the position too');
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

  // The embedded store has one connection and no other process.
  if (harness.name === 'pglite') return;

  test('while others project, the tree is read as of one moment', async () => {
    const store = await harness.fresh();
    const { log, grow, rows, leaves } = leafyLog();
    await grow(20);
    const runner = runnerOver(log, store);
    await reached(runner, await log.head());
    assert.equal(runner.role(), 'projects');
    const before = { size: leaves(), position: await log.head() };
    const read = await withTree(await runner.open(), async ({ tree, position, readTile }) => {
      await grow(10);
      await reached(runner, await log.head());
      const root = await treeReader(readTile).root(0, tree.size);
      assert.deepEqual(root, rootOf(tree));
      return { size: tree.size, position };
    });
    assert.deepEqual(read, before);
    await runner.stop();
    assert.equal(runner.role(), null);
    assert.deepEqual(await treeRowsOf(await rowsFor(log, store)), rows());
  });
}
