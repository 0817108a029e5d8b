// What the README says can be done, can be done.
import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { test } from 'node:test';
import { readConfig } from '#src/config.ts';
import { longestRunMs } from '#src/domain/job/retry.ts';
import { LIMITS, METHODS } from '#src/domain/limits.ts';
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

test('readme: the limits in it are those that are enforced', () => {
  const { urlLength, retryAttempts, retryBackoffMs, timeoutMs, idempotencyKeyLength, jsonDepth } = LIMITS;
  const { requestBodyBytes, targetHeaders, targetHeaderBytes, inFlightPerPayer, perMinutePerPayer } = LIMITS;
  const { decisionsPerMinute, decisionsPerDay, decideBodyBytes, answerWaitMs, policyDnsMs } = LIMITS;
  const callMs = policyDnsMs.max + longestRunMs(retryAttempts.max, timeoutMs.max) + answerWaitMs.max;
  const missing = [
    `URL of at most ${urlLength.max} characters; ${METHODS.slice(0, -1).join(', ')} or ${METHODS.at(-1)};`,
    `${retryAttempts.min} to ${retryAttempts.max} (default ${retryAttempts.default})`,
    `backoff of ${retryBackoffMs.min} to ${retryBackoffMs.max} ms (default ${retryBackoffMs.default})`,
    `${timeoutMs.min} to ${timeoutMs.max} ms (default ${timeoutMs.default})`,
    `${requestBodyBytes.max / 1024} kB, JSON at most ${jsonDepth.max} deep`,
    `${targetHeaders.max} headers of ${targetHeaderBytes.max / 1024} kB in all`,
    `\`idempotencyKey\` of ${idempotencyKeyLength.min} to ${idempotencyKeyLength.max} characters`,
    `${inFlightPerPayer.max} calls in flight, ${perMinutePerPayer.max} a minute`,
    `${decisionsPerMinute.max} decisions (${decisionsPerDay.max} a day; ${decideBodyBytes.max / 1024} kB each)`,
  ].filter((words) => !README.includes(words));
  assert.deepEqual(missing, []);
  const told = Number(/a call may take (\d+) s/.exec(README)?.[1]);
  assert.ok(told * 1000 <= callMs && callMs <= (told + 5) * 1000, `${told} s and ${callMs} ms`);
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
