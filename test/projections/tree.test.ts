// The tree by the pure fold: what makes it grow and what does not, and that a history which was changed is not consistent
// with what was signed before.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Rows } from '#projections/fold.ts';
import { judgeEvents, withLeaves } from '#projections/projection.ts';
import { READ_MODELS } from '#projections/registry.ts';
import { tableShapes } from '#projections/rows.ts';
import { projectTransparency } from '#projections/transparency/project.ts';
import { concatBytes, fromBase64 } from '#src/domain/encoding.ts';
import { verifyConsistencyProof } from '#src/domain/transparency/merkle.ts';
import { consistencyProof, type ReadTile, treeReader } from '#src/domain/transparency/tiles.ts';
import type { RecordedEvent } from '#src/ports/event-log.ts';
import { checkpointSigned, keyActivated } from '#test/support/given/given-events.ts';
import {
  appendAll,
  jobAppends,
  jobIdOf,
  judgeBySignature,
  PLAN,
  recorded,
} from '#test/support/given/job-histories.ts';
import { leafyLog } from '#test/support/log/leafy-log.ts';
import { memoryLog } from '#test/support/log/memory-log.ts';
import { rowsAfter } from '#test/support/log/read-model-rows.ts';

const shapes = tableShapes(READ_MODELS);
/** Of nothing. */
const HASH = Buffer.alloc(32).toString('base64');

/** The tree of the log's rows, without any database. */
async function treeOf(events: readonly RecordedEvent[]) {
  const rows = await rowsAfter(events);
  const size = Number(rows.get('transparency_tree')?.get('all')?.row.size);
  const readTile: ReadTile = async (level, n) => {
    const parts = Array.from({ length: 16 }, (_, part) => {
      const row = rows.get('transparency_tiles')?.get(`${level}/${n}/${part}`)?.row;
      return row === undefined ? '' : String(row.hashes);
    });
    const hashes = parts.join('').match(/.{44}/g) ?? [];
    return concatBytes(...hashes.map((text) => fromBase64(text) ?? new Uint8Array(0)));
  };
  const reader = treeReader(readTile);
  return { size, reader, root: (upTo = size) => reader.root(0, upTo) };
}

describe('a history against an older checkpoint', () => {
  const JOBS = 24;
  const OLD = 20;

  /** Jobs one after the other: each has one leaf. */
  async function history(change: (seed: number) => readonly Partial<typeof PLAN>[]) {
    const log = memoryLog();
    for (let seed = 0; seed < JOBS; seed++)
      for (const plan of change(seed)) await appendAll(log, jobAppends({ ...PLAN, seed, ...plan }));
    return treeOf(recorded(log));
  }

  const kept = history(() => [{}]).then(async (tree) => ({ size: OLD, root: await tree.root(OLD) }));

  async function consistent(tree: Awaited<ReturnType<typeof treeOf>>): Promise<boolean> {
    const { size: from, root: fromRoot } = await kept;
    const proof = await consistencyProof(tree.reader, from, tree.size);
    return verifyConsistencyProof({ from, to: tree.size, fromRoot, toRoot: await tree.root(), proof });
  }

  test('the same tree after it has grown is consistent', async () => {
    const tree = await history(() => [{}]);
    assert.equal(tree.size, JOBS);
    assert.equal(await consistent(tree), true);
  });

  test('one rebuilt without any one job of it is not', async () => {
    for (let gone = 0; gone < OLD; gone++) {
      const tree = await history((seed) => (seed === gone ? [] : [{}]));
      assert.equal(tree.size, JOBS - 1);
      assert.equal(await consistent(tree), false, `without ${jobIdOf(gone)}`);
    }
  });

  test('one with a job changed, added or moved is not; one without a newer job is', async () => {
    const changed = await history((seed) => [seed === 7 ? { answers: [500] } : {}]);
    assert.equal(await consistent(changed), false);
    const added = await history((seed) => (seed === 7 ? [{}, { seed: 99 }] : [{}]));
    assert.equal(await consistent(added), false);
    const moved = await history((seed) => [seed === 7 ? { seed: 8 } : seed === 8 ? { seed: 7 } : {}]);
    assert.equal(await consistent(moved), false);
    // The checkpoint says nothing of what came after it.
    assert.equal(await consistent(await history((seed) => (seed === OLD ? [] : [{}]))), true);
  });
});

describe('leaves of a batch', () => {
  async function given() {
    const { log, grow } = leafyLog();
    await grow(30);
    const judged = await judgeEvents(recorded(log), judgeBySignature);
    const asked: unknown[] = [];
    const load =
      (rows: Rows = new Map()) =>
      async (keys: ReadonlyMap<string, ReadonlySet<string>>) => {
        asked.push([...keys].map(([table, found]) => [table, [...found]]));
        return rows;
      };
    return { judged, asked, load };
  }

  test('the stored tree is asked for once, and for a batch without leaves or models without a tree not at all', async () => {
    const { judged, asked, load } = await given();
    const none = judged.filter(({ event }) => !/ReceiptSigned|^SigningKey/.test(event.type));
    assert.ok(none.length > 0);
    assert.equal(await withLeaves(shapes, none, load()), none);
    const others = shapes.filter(({ name }) => name !== 'transparency_tree');
    assert.equal(await withLeaves(others, judged, load()), judged);
    assert.deepEqual(asked, []);
    const grown = await withLeaves(shapes, judged, load());
    assert.deepEqual(asked, [[['transparency_tree', ['all']]]]);
    const indexes = grown.flatMap(({ facts: { leaf } }) => (leaf === null ? [] : [leaf.index]));
    assert.deepEqual(
      indexes,
      Array.from({ length: judged.length - none.length }, (_, index) => index),
    );
  });

  test('a leaf of the stored tree is not added again', async () => {
    const { judged, load } = await given();
    const position = judged[11]?.position ?? '';
    const row = { id: 'all', size: 2 ** 40, edge: HASH };
    const stored: Rows = new Map([['transparency_tree', new Map([['all', { row, position }]])]]);
    const grown = await withLeaves(shapes, judged, load(stored));
    assert.ok(grown.slice(0, 12).every(({ facts }) => facts.leaf === null));
    assert.equal(grown.find(({ facts }) => facts.leaf !== null)?.facts.leaf?.index, 2 ** 40);
  });

  test('a stored tree that cannot be read stops the batch', async () => {
    const { judged, load } = await given();
    for (const [row, message] of [
      [{ id: 'all', size: '2', edge: HASH }, /cannot be read/],
      [{ id: 'all', size: 1, edge: 'AAAA' }, /cannot be read/],
      [{ id: 'all', size: 3, edge: HASH }, /not as many complete subtrees/],
    ] as const) {
      const stored: Rows = new Map([['transparency_tree', new Map([['all', { row, position: '0' }]])]]);
      await assert.rejects(withLeaves(shapes, judged, load(stored)), message);
    }
  });
});

describe('the rows of one event', () => {
  test('a checkpoint of a size that no tree can have is passed over', async () => {
    const sizes = ['7', '9'.repeat(20), '9'.repeat(400)];
    const changes = sizes.map((size) => projectTransparency(checkpointSigned({ size }), { leaf: null }));
    assert.deepEqual(
      changes.map(({ length }) => length),
      [1, 0, 0],
    );
  });

  test('a hash is written at its own place, however often', () => {
    const [data, hash] = [new Uint8Array(32).fill(1), new Uint8Array(32).fill(2)];
    const entries = [{ level: 0, index: 274, hash }];
    const leaf = { index: 274, data, entries, tree: { size: 275, edge: [] } };
    const change = projectTransparency(keyActivated(), { leaf }).find(({ key }) => key === '0/1/1');
    assert.ok(change?.table === 'transparency_tiles');
    const before = { id: '0/1/1', hashes: HASH.repeat(2) };
    const after = { id: '0/1/1', hashes: `${HASH.repeat(2)}${Buffer.from(hash).toString('base64')}` };
    assert.deepEqual(change.apply(before), after);
    assert.deepEqual(change.apply(after), after);
  });
});
