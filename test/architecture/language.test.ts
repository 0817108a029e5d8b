// Plain language: no file contains a phrase of banned-phrases.txt.
import assert from 'node:assert/strict';
import { globSync, readFileSync, statSync } from 'node:fs';
import { test } from 'node:test';
import { rootPath } from '#test/support/process/runtime.ts';

const LIST = 'test/architecture/banned-phrases.txt';

const phrases = readFileSync(`${rootPath}/${LIST}`, 'utf8')
  .split('\n')
  .filter((line) => line !== '' && !line.startsWith('#'))
  .map((line) => {
    const [pattern = '', instead = ''] = line.split('\t');
    return { regex: new RegExp(`\\b${pattern}\\b`, 'i'), pattern, instead };
  });

const FILES = globSync(['{src,projections,test}/**/*.{ts,md,css,py,sh}', 'deploy/**', '*.md'], {
  cwd: rootPath,
}).filter(
  (file) =>
    !/^(src\/verify\/built|test\/fixtures)\/|\/language\.test\.ts$/.test(file) &&
    statSync(`${rootPath}/${file}`).isFile(),
);

test('language: enough files and phrases are checked for the verdict to mean something', () => {
  assert.ok(FILES.length >= 300 && phrases.length >= 10, `${FILES.length} files, ${phrases.length} phrases`);
});

test('language: a phrase of the list is found', () => {
  assert.deepEqual(found('x.ts', '// nobody told it'), [
    'x.ts:1: "told": returned, reported, stored, projected, logged (what it does)',
    'x.ts:1: "nobody": no one, no process, no caller',
  ]);
});

test('language: no file contains a phrase of the list', () => {
  assert.deepEqual(
    FILES.flatMap((file) => found(file, readFileSync(`${rootPath}/${file}`, 'utf8'))),
    [],
  );
});

function found(file: string, text: string): string[] {
  return text
    .split('\n')
    .flatMap((line, n) =>
      phrases
        .filter(({ regex }) => regex.test(line))
        .map(({ pattern, instead }) => `${file}:${n + 1}: "${pattern}": ${instead}`),
    );
}
