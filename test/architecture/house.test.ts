// House rules: names, sizes, one reader of the environment, no disabled types.
import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { test } from 'node:test';
import { rootPath } from '#test/support/process/runtime.ts';
import { codeOf, sizesOf } from './parse-source.ts';

const read = (file: string) => readFileSync(`${rootPath}/${file}`, 'utf8');
const PRODUCTION = globSync(['deploy/**/*.ts', 'src/**/*.ts', 'projections/**/*.ts'], { cwd: rootPath })
  .filter((file) => !file.startsWith('src/verify/built/') && !file.startsWith('src/discovery/snippets/'))
  .sort();
const TESTS = globSync('test/**/*.ts', { cwd: rootPath }).sort();

test('house: enough files are checked for the results to be meaningful', () => {
  assert.ok(PRODUCTION.length >= 90 && TESTS.length >= 40, `${PRODUCTION.length} and ${TESTS.length} files`);
});

test('house: no production file has over 400 lines, and main at most 40', () => {
  const long = PRODUCTION.filter((file) => {
    const lines = read(file).trimEnd().split('\n').length;
    return lines > (file === 'src/main.ts' ? 40 : 400);
  });
  assert.deepEqual(long, []);
});

test('house: no function and no class has over 120 lines', () => {
  const sizes = PRODUCTION.flatMap((file) => sizesOf(read(file)).map((size) => ({ file, ...size })));
  assert.ok(sizes.length >= 3000, `${sizes.length} functions and classes`);
  const long = sizes.filter(({ lines }) => lines > 120);
  assert.deepEqual(
    long.map(({ file, name, lines }) => `${file}: ${name} ${lines}`),
    [],
  );
});

test('house: names are in kebab-case and specific', () => {
  const unspecific = /^(utils?|helpers?|common|misc|manager|core|index|shared)$/;
  const bad = [...PRODUCTION, ...TESTS].filter((file) => {
    const parts = file.replace(/(\.(test|contract))?\.ts$/, '').split('/');
    return parts.some(
      (part) => unspecific.test(part) || !/^[a-z0-9]+(-[a-z0-9]+)*$/.test(part.replace('.config', '')),
    );
  });
  assert.deepEqual(bad, []);
});

test('house: the environment is read in config.ts and nowhere else', () => {
  const reads =
    /\bprocess\s*\.\s*env\b|\b(Bun|Deno)\s*\.\s*env\b|import\.meta\.env\b|\{[^}]*\benv\b[^}]*\}\s*=\s*process\b/;
  const readers = PRODUCTION.filter((file) => reads.test(codeOf(read(file))));
  assert.deepEqual(readers, ['src/config.ts']);
});

test('house: types and lint checks are not disabled in production code', () => {
  const anything = /\bas\s+any\b|[:<|,]\s*any\b/;
  const disabled = /@ts-(ignore|expect-error|nocheck)/;
  assert.deepEqual(
    PRODUCTION.filter((file) => anything.test(withoutComments(read(file))) || disabled.test(read(file))),
    [],
  );
  const unexplained = PRODUCTION.flatMap((file) =>
    read(file)
      .split('\n')
      .filter((line) => /biome-ignore/.test(line) && !/biome-ignore [\w/]+: \S+/.test(line))
      .map((line) => `${file}: ${line.trim()}`),
  );
  assert.deepEqual(unexplained, []);
});

test('house: no file re-exports another whole', () => {
  assert.deepEqual(
    PRODUCTION.filter((file) => /^export \*/m.test(read(file))),
    [],
  );
});

test('house: what permits is never null, and a refusal is recognised in one way', () => {
  const sources = PRODUCTION.map((file) => ({ file, source: withoutComments(read(file)) }));
  const aliases = sources.flatMap(({ source }) =>
    [...source.matchAll(/\btype (\w+) = Refused\b/g)].map(([, name]) => name),
  );
  assert.ok(aliases.length >= 4, `${aliases.length} names of refusals`);
  const refusal = `(?:${['Refused', ...aliases].join('|')})\\b(?:<[^>]*>)?`;
  // With a third member, as in `string | Refused | null`, null is an absence.
  const permitsByNull = new RegExp(
    `(?<!\\|\\s*)\\b(?:${refusal}\\s*\\|\\s*null\\b|null\\s*\\|\\s*${refusal})`,
  );
  const found = sources.filter(({ source }) => permitsByNull.test(source)).map(({ file }) => file);
  assert.deepEqual(found, []);
  const recognised = sources.filter(({ source }) => /'refused' in\b/.test(source)).map(({ file }) => file);
  assert.deepEqual(recognised, ['src/domain/refusal.ts']);
});

const withoutComments = (source: string) => source.replace(/\/\*[\s\S]*?\*\/|(?<!:)\/\/.*/g, '');
