// Time, ids and randomness are arguments: domain, ports, use cases and documents use no clock and no random source.
// tsconfig.pure.json excludes the other globals of the runtimes there.
import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { test } from 'node:test';
import { rootPath } from '#test/support/process/runtime.ts';
import { codeOf } from './parse-source.ts';

const filesOf = (...patterns: string[]) => globSync(patterns, { cwd: rootPath }).sort();

/** Lines of code that match `forbidden`; comments and strings are ignored. */
function matchingLines(files: readonly string[], forbidden: RegExp): string[] {
  return files.flatMap((file) => {
    const code = codeOf(readFileSync(`${rootPath}/${file}`, 'utf8'));
    return code.split('\n').flatMap((line) => (forbidden.test(line) ? [`${file}: ${line.trim()}`] : []));
  });
}

test('purity: no clock and no randomness in domain, ports and the projections of events', () => {
  const files = filesOf('src/{domain,ports}/**/*.ts', 'projections/*/project.ts');
  assert.ok(files.length >= 35, `${files.length} files`);
  assert.deepEqual(
    matchingLines(files, /new\s+Date\s*\(|Date\s*\.\s*now|Math\s*\.\s*random|\bDate\s*\(\)|performance/),
    [],
  );
});

test('purity: use cases and documents get time and randomness as arguments', () => {
  const files = filesOf('src/{usecases,discovery}/**/*.ts').filter((file) => !file.includes('/snippets/'));
  assert.ok(files.length >= 15, `${files.length} files`);
  const forbidden =
    /new\s+Date\s*(\(\s*\)|[^\s(])|Date\s*\.\s*now|Math\s*\.\s*random|performance|\bsetTimeout|\bcrypto\b|\bfetch\s*\(/;
  assert.deepEqual(matchingLines(files, forbidden), []);
});
