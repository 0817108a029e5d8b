// Every measure of `bun run bench` runs to its end and prints its rows. Ratios are not asserted: the sizes are too small.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import process from 'node:process';
import { text } from 'node:stream/consumers';
import { test } from 'node:test';
import { needsPostgres } from '#test/support/log/postgres.ts';
import { rootPath } from '#test/support/process/runtime.ts';
import { MEASURES } from './measures.ts';
import { IN_README } from './results.ts';

const needs = needsPostgres();
const BUN = join(rootPath, 'node_modules/bun/bin/bun.exe');

for (const { name, title } of MEASURES) {
  test(`bench: ${name}, ${title}: runs and prints its rows`, needs, async () => {
    const args = ['test/bench/run.ts', name, '--smoke'];
    const child = spawn(BUN, args, { cwd: rootPath, stdio: ['ignore', 'pipe', 'pipe'], env: process.env });
    const ended = once(child, 'exit');
    const [table, progress] = await Promise.all([text(child.stdout), text(child.stderr)]);
    assert.deepEqual(await ended, [0, null], progress);
    const rows = table.split('\n').filter((line) => line.startsWith(`${name} `));
    assert.ok(rows.length > 0, table);
    assert.match(table, new RegExp(`^${name}: .+`, 'm'), 'it states what the peers are');
    for (const [measure, begin] of IN_README) {
      if (measure !== name) continue;
      assert.ok(
        rows.some((line) => line.replace(/^\S+ +/, '').startsWith(begin)),
        `${begin}: a row of README's table`,
      );
    }
  });
}
