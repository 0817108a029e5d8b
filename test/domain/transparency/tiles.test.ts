// Tiles: their one spelling in addresses, what a tree of a size has of them, and the tree read from them.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { parseTilePath, TileMissing, tileWidth, treeReader } from '#src/domain/transparency/tiles.ts';
import { rootOf } from '#src/domain/transparency/tree.ts';
import { sha256 } from '#test/support/given/primitives.ts';
import { smallLog } from '#test/support/log/small-log.ts';

describe('the path of a tile', () => {
  for (const [path, tile] of [
    ['0/000', { level: 0, n: 0, width: 256 }],
    ['0/x001/x234/067', { level: 0, n: 1_234_067, width: 256 }],
    ['63/x001/000.p/1', { level: 63, n: 1000, width: 1 }],
    ['entries/999.p/255', { level: 'entries', n: 999, width: 255 }],
  ] as const) {
    test(path, () => assert.deepEqual(parseTilePath(path), tile));
  }
  for (const path of [
    '',
    '0',
    '0/0',
    '0/0000',
    '0/001/002',
    '0/x000/001',
    '0/x001/x002',
    '00/001',
    '64/001',
    '-1/001',
    'hashes/001',
    '0/001.p/0',
    '0/001.p/256',
    '0/001.p/01',
    '0/001.p',
    '0/001/',
    '/0/001',
    '0/٠٠١',
    '0/x999/x999/x999/x999/x999/x999/999',
    '0/001.p/1\n',
  ])
    test(`${JSON.stringify(path)} is none`, () => assert.equal(parseTilePath(path), null));
});

test('a tree of 70,000 leaves has the tiles that the specification counts', () => {
  const full = (level: number) => {
    let n = 0;
    while (tileWidth(level, n, 70_000) === 256) n++;
    return [n, tileWidth(level, n, 70_000), tileWidth(level, n + 1, 70_000)];
  };
  assert.deepEqual(
    [full(0), full(1), full(2), full(3)],
    [
      [273, 112, 0],
      [1, 17, 0],
      [0, 1, 0],
      [0, 0, 0],
    ],
  );
  assert.equal(tileWidth('entries', 273, 70_000), 112);
});

const log = smallLog();
const roots = [rootOf(log.tree())];
for (let n = 0; n < 700; n++) {
  await log.append(sha256(`${n}`));
  roots.push(rootOf(log.tree()));
}

describe('a tree of 700 leaves, read from its tiles', () => {
  test('has at each size the root that it had then', async () => {
    const reader = treeReader(log.readTile);
    for (const size of [0, 1, 2, 255, 256, 257, 511, 512, 513, 699, 700])
      assert.deepEqual(await reader.root(0, size), roots[size], `${size}`);
  });
  test('asks for no tile twice, and only for few', async () => {
    const asked: string[] = [];
    const reader = treeReader((level, n) => {
      asked.push(`${level}/${n}`);
      return log.readTile(level, n);
    });
    await reader.root(0, 700);
    await reader.root(0, 699);
    assert.deepEqual(asked.sort(), ['0/2', '1/0']);
  });
  test('is not read where a tile is missing or too short', async () => {
    await assert.rejects(treeReader(async () => null).root(0, 700), TileMissing);
    const short = treeReader(async (level, n) => (await log.readTile(level, n))?.slice(0, 32) ?? null);
    await assert.rejects(short.root(0, 700), TileMissing);
    await assert.rejects(treeReader(log.readTile).root(0, 701), TileMissing);
  });
});
