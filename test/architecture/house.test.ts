// House rules that a text can be held to: names, sizes, one reader of the environment, no types switched off.
import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { test } from 'node:test';
import { rootPath } from '#test/support/runtime.ts';
import { codeOf } from './scan-imports.ts';

const read = (file: string) => readFileSync(`${rootPath}/${file}`, 'utf8');
const PRODUCTION = globSync(['src/**/*.ts', 'projections/**/*.ts'], { cwd: rootPath })
  .filter((file) => !file.startsWith('src/verify/built/') && !file.startsWith('src/discovery/snippets/'))
  .sort();
const TESTS = globSync('test/**/*.ts', { cwd: rootPath }).sort();

test('house: enough files are seen for the verdicts to mean something', () => {
  assert.ok(PRODUCTION.length >= 90 && TESTS.length >= 40, `${PRODUCTION.length} and ${TESTS.length} files`);
});

test('house: no production file has over 400 lines, and main at most 40', () => {
  const long = PRODUCTION.filter((file) => {
    const lines = read(file).trimEnd().split('\n').length;
    return lines > (file === 'src/main.ts' ? 40 : 400);
  });
  assert.deepEqual(long, []);
});

test('house: names are in kebab-case and say something', () => {
  const silent = /^(utils?|helpers?|common|misc|manager|core|index|shared)$/;
  const bad = [...PRODUCTION, ...TESTS].filter((file) => {
    const parts = file.replace(/(\.(test|contract))?\.ts$/, '').split('/');
    return parts.some(
      (part) => silent.test(part) || !/^[a-z0-9]+(-[a-z0-9]+)*$/.test(part.replace('.config', '')),
    );
  });
  assert.deepEqual(bad, []);
});

test('house: the environment is read in config.ts and nowhere else', () => {
  const said =
    /\bprocess\s*\.\s*env\b|\b(Bun|Deno)\s*\.\s*env\b|import\.meta\.env\b|\{[^}]*\benv\b[^}]*\}\s*=\s*process\b/;
  const readers = PRODUCTION.filter((file) => said.test(codeOf(read(file))));
  assert.deepEqual(readers, ['src/config.ts']);
});

test('house: types and checks are not switched off in production code', () => {
  const anything = /\bas\s+any\b|[:<|,]\s*any\b/;
  const switchedOff = /@ts-(ignore|expect-error|nocheck)/;
  assert.deepEqual(
    PRODUCTION.filter((file) => anything.test(withoutComments(read(file))) || switchedOff.test(read(file))),
    [],
  );
  const silenced = PRODUCTION.flatMap((file) =>
    read(file)
      .split('\n')
      .filter((line) => /biome-ignore/.test(line) && !/biome-ignore [\w/]+: \S+/.test(line))
      .map((line) => `${file}: ${line.trim()}`),
  );
  assert.deepEqual(silenced, []);
});

test('house: no file re-exports another whole', () => {
  assert.deepEqual(
    PRODUCTION.filter((file) => /^export \*/m.test(read(file))),
    [],
  );
});

const withoutComments = (source: string) => source.replace(/\/\*[\s\S]*?\*\/|(?<!:)\/\/.*/g, '');
