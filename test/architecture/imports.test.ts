// Every import of every file is allowed by the table of src/README.md, and none closes a circle.
import assert from 'node:assert/strict';
import { existsSync, globSync } from 'node:fs';
import { test } from 'node:test';
import { rootPath } from '#test/support/process/runtime.ts';
import { circlesOf } from './circles.ts';
import { IMPORT_TABLE, type Row } from './import-table.ts';
import { coversPackage, coversRoom, type Import, importsOf, roomOf } from './rooms.ts';

const FILES = globSync(['deploy/**/*.ts', 'src/**/*.ts', 'projections/**/*.ts'], { cwd: rootPath })
  .filter((file) => !file.startsWith('src/verify/built/'))
  .sort();
const SCANS = FILES.map(importsOf);
const IMPORTS = SCANS.flatMap((scan) => scan.imports);

const rowOf = (room: string): Row | undefined =>
  IMPORT_TABLE.find((row) => row.room === room) ??
  IMPORT_TABLE.find((row) => row.room.endsWith('/*') && room.startsWith(row.room.slice(0, -1)));

const shown = ({ file, specifier }: Import) => `${file} → ${specifier}`;

test('imports: enough files and imports are checked for the result to be meaningful', () => {
  assert.ok(FILES.length >= 90, `${FILES.length} files`);
  assert.ok(IMPORTS.length >= 350, `${IMPORTS.length} imports`);
  for (const { room } of IMPORT_TABLE.filter((row) => row.rooms.length > 0 && !row.room.includes('*'))) {
    if (FILES.some((file) => roomOf(file) === room)) {
      assert.ok(
        IMPORTS.some((found) => found.room === room),
        `no import found in ${room}`,
      );
    }
  }
});

test('imports: the table has its rows', () =>
  assert.ok(IMPORT_TABLE.length >= 20, `${IMPORT_TABLE.length} rows`));

test('imports: every file is in a room of the table', () => {
  assert.deepEqual(
    FILES.filter((file) => rowOf(roomOf(file)) === undefined),
    [],
  );
});

test('imports: every imported file exists, and is named with its extension', () => {
  const bad = IMPORTS.filter(
    ({ target }) => target !== null && !(/\.(ts|json)$/.test(target) && existsSync(`${rootPath}/${target}`)),
  );
  assert.deepEqual(bad.map(shown), []);
  const aliases = IMPORTS.filter(({ specifier, target }) => specifier.startsWith('#') && target === null);
  assert.deepEqual(aliases.map(shown), []);
});

test('imports: no import specifier is computed', () => {
  assert.deepEqual(
    FILES.filter((_, i) => (SCANS[i]?.computed ?? 0) > 0),
    [],
  );
});

test('imports: the table allows each import', () => {
  const refused = IMPORTS.filter((found) => {
    const row = rowOf(found.room);
    if (found.target === null) return !row?.packages.some((entry) => coversPackage(entry, found.specifier));
    return roomOf(found.target) !== found.room && !row?.rooms.some((entry) => coversRoom(entry, found));
  });
  assert.deepEqual(refused.map(shown), []);
});

test('imports: no files and no folders import each other in a circle, types included', () => {
  // `projections` is a room beside those of `src`.
  const beside = (file: string) => file.replace(/^projections\//, 'src/projections/');
  const joined = IMPORTS.map(({ file, target }) => ({
    file: beside(file),
    target: target && beside(target),
  }));
  assert.deepEqual(circlesOf(joined), []);
});

/** Rules that hold whatever the table contains. */
const NEVER: readonly (readonly [rule: string, broken: (from: string, to: string) => boolean])[] = [
  ['usecases → projections', (from, to) => from === 'src/usecases' && isProjection(to)],
  ['projection → projection', (from, to) => isModel(from) && isModel(to) && from !== to],
  ['adapter → adapter', (from, to) => isAdapter(from) && isAdapter(to) && from !== to],
  ['http → adapters', (from, to) => from === 'src/http' && isAdapter(to)],
  ['anything → main', (from, to) => to === 'src/main' && from !== 'src/main'],
  ['anything → test', (_, to) => to === 'test'],
  [
    'domain → anything but lib',
    (from, to) => from === 'src/domain' && !['src/domain', 'src/lib'].includes(to),
  ],
  [
    'ports → anything but domain and lib',
    (from, to) => from === 'src/ports' && !['src/ports', 'src/domain', 'src/lib'].includes(to),
  ],
];
const isProjection = (room: string) => room === 'projections' || isModel(room);
const isModel = (room: string) => room.startsWith('projections/');
const isAdapter = (room: string) => room.startsWith('src/adapters/');

for (const [rule, broken] of NEVER) {
  test(`imports: never ${rule}`, () => {
    const found = IMPORTS.filter(({ room, target }) => target !== null && broken(room, roomOf(target)));
    assert.deepEqual(found.map(shown), []);
  });
}
