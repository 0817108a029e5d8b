// Time, ids and dice are arguments: no clock and no chance in the rooms that say what is true and what may happen.
// (The compiler refuses the runtimes' other globals there: tsconfig.pure.json.)
import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { test } from 'node:test';
import { rootPath } from '#test/support/runtime.ts';
import { codeOf } from './scan-imports.ts';

const filesOf = (...patterns: string[]) => globSync(patterns, { cwd: rootPath }).sort();

/** Lines of code, comments and texts left out, that say what no line may say. */
function linesThat(files: readonly string[], said: RegExp): string[] {
  return files.flatMap((file) => {
    const code = codeOf(readFileSync(`${rootPath}/${file}`, 'utf8'));
    return code.split('\n').flatMap((line) => (said.test(line) ? [`${file}: ${line.trim()}`] : []));
  });
}

test('purity: no clock and no dice in domain, ports and the projections of events', () => {
  const files = filesOf('src/{domain,ports}/**/*.ts', 'projections/*/project.ts');
  assert.ok(files.length >= 35, `${files.length} files`);
  assert.deepEqual(
    linesThat(files, /new\s+Date\s*\(|Date\s*\.\s*now|Math\s*\.\s*random|\bDate\s*\(\)|performance/),
    [],
  );
});

test('purity: use cases and documents take the time and the dice that they are given', () => {
  const files = filesOf('src/{usecases,discovery}/**/*.ts').filter((file) => !file.includes('/snippets/'));
  assert.ok(files.length >= 15, `${files.length} files`);
  const said =
    /new\s+Date\s*(\(\s*\)|[^\s(])|Date\s*\.\s*now|Math\s*\.\s*random|performance|\bsetTimeout|\bcrypto\b|\bfetch\s*\(/;
  assert.deepEqual(linesThat(files, said), []);
});
