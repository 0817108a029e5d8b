import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { LogInUse, takeTenancy } from '#src/adapters/event-log/sqlite/process-lock.ts';

const folder = mkdtempSync(join(tmpdir(), 'relay-tenancy-'));
after(() => rmSync(folder, { recursive: true, force: true }));

test('tenancy: many share, and none of them lets anyone be alone', async () => {
  const file = join(folder, 'shared', 'lock');
  const [one, two] = [await takeTenancy(file, 'shared'), await takeTenancy(file, 'shared')];
  one.release();
  await assert.rejects(takeTenancy(file, 'alone'), LogInUse);
  two.release();
  (await takeTenancy(file, 'alone')).release();
});

test('tenancy: who is alone lets nobody in until it goes', async () => {
  const file = join(folder, 'alone');
  const alone = await takeTenancy(file, 'alone');
  await assert.rejects(takeTenancy(file, 'shared'), LogInUse);
  await assert.rejects(takeTenancy(file, 'alone'), LogInUse);
  const waiting = takeTenancy(file, 'shared');
  alone.release();
  (await waiting).release();
});
