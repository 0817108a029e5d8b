// The scratch space of an audit: what was put comes back, from memory or from the file, and nothing stays behind.
import assert from 'node:assert/strict';
import { mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { sqliteScratch } from '#src/adapters/audit/scratch-sqlite.ts';

const folder = mkdtempSync(join(tmpdir(), 'scratch-test-'));
after(() => rmSync(folder, { recursive: true }));

for (const held of [1, 3, 1000]) {
  test(`with ${held} changes held: what was put last comes back, what was deleted does not`, () => {
    const scratch = sqliteScratch(folder, held);
    const table = scratch.table<{ readonly n: number; readonly more: readonly string[] }>('one');
    for (let n = 0; n < 10; n++) table.put(`key ${n}`, { n, more: ['ü', '"'] });
    table.put('key 3', { n: 33, more: [] });
    table.delete('key 4');
    table.delete('never');
    assert.deepEqual(table.get('key 3'), { n: 33, more: [] });
    assert.deepEqual(table.get('key 9'), { n: 9, more: ['ü', '"'] });
    assert.deepEqual([table.get('key 4'), table.get('never'), table.get('')], [null, null, null]);
    table.put('key 4', { n: 44, more: [] });
    assert.equal(table.get('key 4')?.n, 44);
    scratch.close();
  });

  test(`with ${held} changes held: tables are apart, and one name is one table`, () => {
    const scratch = sqliteScratch(folder, held);
    scratch.table<number>('one').put('key', 1);
    scratch.table<number>('two').put('key', 2);
    const found = ['one', 'two', 'three'].map((name) => scratch.table<number>(name).get('key'));
    assert.deepEqual(found, [1, 2, null]);
    scratch.close();
  });

  test(`with ${held} changes held: entries of a prefix come in order, however many, also while others are put`, () => {
    const scratch = sqliteScratch(folder, held);
    const table = scratch.table<number>('one');
    for (let n = 999; n >= 0; n--) table.put(`b/${String(n).padStart(4, '0')}`, n);
    table.put('a/9', -1);
    table.put('b', -1);
    table.put('c/0', -1);
    table.delete('b/0500');
    const found: number[] = [];
    for (const [key, n] of table.entries('b/')) {
      assert.equal(key, `b/${String(n).padStart(4, '0')}`);
      table.put('z', n);
      found.push(n);
    }
    assert.deepEqual(
      found,
      Array.from({ length: 1000 }, (_, n) => n).filter((n) => n !== 500),
    );
    assert.equal([...table.entries()].length, 1003);
    assert.deepEqual([...scratch.table('empty').entries()], []);
    scratch.close();
  });
}

test('its file is the owner’s alone while it is there, and gone after', () => {
  const scratch = sqliteScratch(folder);
  const [name = assert.fail('no directory')] = readdirSync(folder);
  assert.equal(statSync(join(folder, name)).mode & 0o777, 0o700);
  scratch.close();
  assert.deepEqual(readdirSync(folder), []);
});

test('without a place for its file it does not begin', () => {
  assert.throws(() => sqliteScratch(join(folder, 'nowhere')), { code: 'ENOENT' });
});
