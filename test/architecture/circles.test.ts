import assert from 'node:assert/strict';
import { test } from 'node:test';
import { circlesOf } from './circles.ts';

const given = (...imports: readonly (readonly [string, string | null])[]) =>
  circlesOf(imports.map(([file, target]) => ({ file, target })));

test('circles: two files that import each other', () =>
  assert.deepEqual(given(['src/a.ts', 'src/b.ts'], ['src/b.ts', 'src/a.ts']), ['src: a.ts → b.ts → a.ts']));

test('circles: two folders whose files import each other, though no file is in a circle', () =>
  assert.deepEqual(given(['src/a/x.ts', 'src/b/x.ts'], ['src/b/y.ts', 'src/a/y.ts']), ['src: a → b → a']));

test('circles: a file and a folder beside it', () =>
  assert.deepEqual(given(['src/list.ts', 'src/a/x.ts'], ['src/a/y.ts', 'src/list.ts']), [
    'src: list.ts → a → list.ts',
  ]));

test('circles: of three, past entries that are in none', () =>
  assert.deepEqual(
    given(
      ['src/start.ts', 'src/a.ts'],
      ['src/a.ts', 'src/end.ts'],
      ['src/a.ts', 'src/b.ts'],
      ['src/b.ts', 'src/c.ts'],
      ['src/c.ts', 'src/a.ts'],
      ['src/c.ts', 'package'],
      ['src/end.ts', null],
    ),
    ['src: a.ts → b.ts → c.ts → a.ts'],
  ));

test('circles: none where the same entry is reached twice, nor between a folder and what is in it', () =>
  assert.deepEqual(
    given(
      ['src/a.ts', 'src/b.ts'],
      ['src/a.ts', 'src/c.ts'],
      ['src/b.ts', 'src/d/x.ts'],
      ['src/c.ts', 'src/d/x.ts'],
      ['src/d/x.ts', 'src/base.ts'],
      ['src/a.ts', 'src/base.ts'],
    ),
    [],
  ));
