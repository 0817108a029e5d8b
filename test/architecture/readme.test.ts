// What the README says can be done, can be done.
import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { test } from 'node:test';
import { readConfig } from '#src/config.ts';
import { rootPath } from '#test/support/runtime.ts';
import { IMPORT_TABLE } from './import-table.ts';

const README = readFileSync(`${rootPath}/README.md`, 'utf8');
const { scripts, devDependencies } = JSON.parse(readFileSync(`${rootPath}/package.json`, 'utf8'));

/** All that stands in code: fenced blocks and inline. */
const CODE = [...README.matchAll(/```[a-z]*\n([\s\S]*?)```|`([^`\n]+)`/g)].map(
  ([, block, inline]) => block ?? inline ?? '',
);

test('readme: the test line stands there once, with the version of Bun that the tests run under', () => {
  const lines = README.split('\n').filter((line) => /^npx .*\brun test$/.test(line));
  const bun = `npx -y bun@${devDependencies.bun}`;
  assert.deepEqual(lines, [`${bun} install --frozen-lockfile && ${bun} run test`]);
});

test('readme: every script that it names exists', () => {
  const named = CODE.flatMap((code) =>
    [...code.matchAll(/\b(?:bun(?:@[\d.]+)?|npm|bunx) run ([\w:-]+)/g)].map((found) => found[1] ?? ''),
  );
  assert.ok(named.length >= 2, `${named.length} scripts named`);
  assert.deepEqual(
    named.filter((name) => !(name in scripts)),
    [],
  );
});

test('readme: every file of the project that it names exists', () => {
  const named = CODE.flatMap((code) =>
    [...code.matchAll(/(?<![\w/*.…:-])(?:src|test|projections|migrations|\.ci)\/[\w./-]+/g)].map(
      ([path]) => path,
    ),
  );
  assert.ok(named.length >= 10, `${named.length} files named`);
  // a room may be named before its first file is there; imports.test.ts holds the table to what is
  const there = (path: string) =>
    existsSync(`${rootPath}/${path}`) || IMPORT_TABLE.some(({ room }) => room === path);
  assert.deepEqual(
    named.map((path) => path.replace(/[/.]+$/, '')).filter((path) => !there(path)),
    [],
  );
});

test('readme: its variables are those that config.ts reads', () => {
  const read = new Set<string>();
  const watched = new Proxy<Record<string, string>>(
    {},
    {
      get(_, name) {
        read.add(String(name));
        return undefined;
      },
    },
  );
  readConfig(watched);
  const lines = README.split('\n');
  const head = lines.indexOf('| variable | default | meaning |');
  assert.ok(head >= 0, 'the README has no table of variables');
  const end = lines.findIndex((line, i) => i > head && !line.startsWith('|'));
  const firstCells = lines.slice(head + 2, end).map((line) => line.split('|')[1] ?? '');
  const told = firstCells.flatMap((cell) =>
    [...cell.matchAll(/`([A-Z0-9_]+)`/g)].map((found) => found[1] ?? ''),
  );
  assert.deepEqual(told.sort(), [...read].sort());
});
