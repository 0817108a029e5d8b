// A soak of one minute on the embedded tier: nothing is lost, doubled, unrecorded or wrong. Growth needs longer runs.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import process from 'node:process';
import { text } from 'node:stream/consumers';
import { test } from 'node:test';
import { needsAnvil } from '#test/support/chain/local-payments.ts';
import { rootPath } from '#test/support/process/runtime.ts';

const BUN = join(rootPath, 'node_modules/bun/bin/bun.exe');

test('one minute of mixed load, with a facilitator that fails', needsAnvil(), async () => {
  const args = ['test/soak/run.ts', '--minutes', '1', '--tier', 'embedded'];
  const child = spawn(BUN, args, { cwd: rootPath, stdio: ['ignore', 'pipe', 'inherit'], env: process.env });
  const [output, [code]] = await Promise.all([text(child.stdout), once(child, 'close')]);
  assert.equal(code, 0, output);
  assert.match(
    output,
    /^embedded: [1-9]\d* calls, [1-9]\d* reads, .*lost 0, doubled 0, unrecorded 0, wrong 0/m,
  );
});
