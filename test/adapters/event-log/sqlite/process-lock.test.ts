import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { acquireProcessLock, LogInUse } from '#src/adapters/event-log/sqlite/process-lock.ts';
import { testFolder } from '#test/support/process/test-folder.ts';

const folder = testFolder('process-lock');

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
