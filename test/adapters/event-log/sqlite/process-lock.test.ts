import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { acquireProcessLock, LogInUse } from '#src/adapters/event-log/sqlite/process-lock.ts';

const folder = mkdtempSync(join(tmpdir(), 'relay-process-lock-'));
after(() => rmSync(folder, { recursive: true, force: true }));

test('process lock: shared locks exclude a lock `alone`', async () => {
  const file = join(folder, 'shared', 'lock');
  const [one, two] = [await acquireProcessLock(file, 'shared'), await acquireProcessLock(file, 'shared')];
  one.release();
  await assert.rejects(acquireProcessLock(file, 'alone'), LogInUse);
  two.release();
  (await acquireProcessLock(file, 'alone')).release();
});

test('process lock: a lock `alone` excludes all others until it is released', async () => {
  const file = join(folder, 'alone');
  const alone = await acquireProcessLock(file, 'alone');
  await assert.rejects(acquireProcessLock(file, 'shared'), LogInUse);
  await assert.rejects(acquireProcessLock(file, 'alone'), LogInUse);
  const waiting = acquireProcessLock(file, 'shared');
  alone.release();
  (await waiting).release();
});
