// Scratch storage of an audit: values are returned from memory or from the file, and no file remains.
import assert from 'node:assert/strict';
import { mkdtempSync, readdirSync, readlinkSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { sqliteScratch } from '#src/adapters/audit/scratch-sqlite.ts';

const folder = mkdtempSync(join(tmpdir(), 'scratch-test-'));
after(() => rmSync(folder, { recursive: true }));

for (const [changes, characters] of [
  [1, 1000],
  [3, 1000],
  [1000, 1_000_000],
  [10_000, 1_000_000],
  [1000, 60],
] as const) {
  const held = { changes, characters };
  const most = `${changes} changes of ${characters} characters`;
  test(`with a buffer of ${most}: the last value is returned, also of a key that has several`, () => {
    const scratch = sqliteScratch<{ readonly n: number; readonly more: readonly string[] }>(folder, held);
    for (let n = 0; n < 10; n++) scratch.put(`key ${n}`, { n, more: ['ü', '"'] });
    scratch.put('key 3', { n: 33, more: [] });
    assert.deepEqual(scratch.get('key 3'), { n: 33, more: [] });
    assert.deepEqual(scratch.get('key 9'), { n: 9, more: ['ü', '"'] });
    assert.deepEqual([scratch.get('never'), scratch.get('')], [null, null]);
    scratch.put('key 4', { n: 44, more: [] }, 0);
    assert.equal(scratch.get('key 4')?.n, 44);
    scratch.close();
  });

  test(`with a buffer of ${most}: the values of a prefix are returned`, () => {
    const scratch = sqliteScratch<number>(folder, held);
    for (let n = 999; n >= 0; n--) scratch.put(`b/${String(n).padStart(4, '0')}`, n);
    scratch.put('b/\u{10ffff}x', 1000);
    for (const other of ['a/9', 'b', 'b0', 'c/0']) scratch.put(other, -1);
    const found = [...scratch.values('b/')].sort((a, b) => a - b);
    assert.deepEqual(
      found,
      Array.from({ length: 1001 }, (_, n) => n),
    );
    scratch.close();
  });

  test(`with a buffer of ${most}: the notes of values that were noted before are returned`, () => {
    const scratch = sqliteScratch<number>(folder, held);
    for (let n = 0; n < 50; n++) scratch.note(`value ${n % 48}`, `place ${n}`);
    const found = [...scratch.repeated()].map(({ value, place }) => `${value}, ${place}`).sort();
    assert.deepEqual(found, ['value 0, place 48', 'value 1, place 49']);
    scratch.close();
  });
}

test('the file is unlinked while it is used, however large it grows: no other process can open it or find it later', () => {
  const scratch = sqliteScratch<string>(folder, { changes: 10, characters: 10_000 });
  // More than the cache keeps.
  const long = 'word '.repeat(2000);
  for (let n = 0; n < 3000; n++) scratch.put(`/${n}`, long);
  assert.deepEqual(readdirSync(folder), []);
  assert.equal(scratch.get('/0'), long);
  assert.equal([...scratch.values('/')].length, 3000);
  scratch.close();
  assert.deepEqual(readdirSync(folder), []);
});

/** Bytes of the unlinked files in the folder that this process has open. */
function namelessBytes(): number {
  const descriptors = readdirSync('/proc/self/fd').map((name) => `/proc/self/fd/${name}`);
  const ours = descriptors.filter((path) => {
    const target = linkOf(path);
    return target.startsWith(folder) && target.endsWith(' (deleted)');
  });
  return ours.reduce((sum, path) => sum + statSync(path).size, 0);
}

function linkOf(path: string): string {
  try {
    return readlinkSync(path);
  } catch {
    // The descriptor that listed the folder.
    return '';
  }
}

test('long values are not kept in memory, however few they are', () => {
  const scratch = sqliteScratch<string>(folder);
  for (let n = 0; n < 40; n++) scratch.put(String(n), 'x'.repeat(1024 * 1024));
  assert.ok(namelessBytes() > 30 * 1024 * 1024, `${namelessBytes()} bytes`);
  scratch.close();
  assert.equal(namelessBytes(), 0);
});

test('throws if the folder for its file does not exist', () => {
  assert.throws(() => sqliteScratch(join(folder, 'nowhere')), { code: 'ENOENT' });
});
