import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { acquireProcessLock, LogInUse } from '#src/adapters/event-log/sqlite/process-lock.ts';

const folder = mkdtempSync(join(tmpdir(), 'relay-tenancy-'));
after(() => rmSync(folder, { recursive: true, force: true }));

test('tenancy: many share, and none of them lets anyone be alone', async () => {
  const file = join(folder, 'shared', 'lock');
  const [one, two] = [await acquireProcessLock(file, 'shared'), await acquireProcessLock(file, 'shared')];
  one.release();
  await assert.rejects(acquireProcessLock(file, 'alone'), LogInUse);
  two.release();
  (await acquireProcessLock(file, 'alone')).release();
});

test('tenancy: who is alone lets nobody in until it goes', async () => {
  const file = join(folder, 'alone');
  const alone = await acquireProcessLock(file, 'alone');
  await assert.rejects(acquireProcessLock(file, 'shared'), LogInUse);
  await assert.rejects(acquireProcessLock(file, 'alone'), LogInUse);
  const waiting = acquireProcessLock(file, 'shared');
  alone.release();
  (await waiting).release();
});
