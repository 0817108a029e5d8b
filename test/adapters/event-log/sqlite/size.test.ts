// What the embedded log says of its size, and how old its events are.
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { statSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { sqliteEventLog } from '#src/adapters/event-log/sqlite/event-log.ts';
import { testFolder } from '#test/support/process/test-folder.ts';

const folder = testFolder('log-size');

test('the events since an instant, the first of all, and the bytes that they take', async () => {
  const file = join(folder, 'events.db');
  let now = 0;
  const log = await sqliteEventLog({ file, now: () => now });
  assert.equal(await log.storedEvents?.(0), null);
  const data = { text: 'x'.repeat(3000) };
  for (const at of [1000, 2000, 2000, 3000, 4000, 5000]) {
    now = at;
    await log.append(`s-${randomUUID()}`, 'no_stream', [{ id: randomUUID(), type: 'T', data, metadata: {} }]);
  }
  const recent = async (since: number) => (await log.storedEvents?.(since))?.recentEvents;
  assert.deepEqual(
    await Promise.all([0, 1000, 1001, 2000, 2001, 3000, 5000, 5001].map(recent)),
    [6, 6, 5, 5, 3, 3, 1, 0],
  );
  const { bytes = 0, ...rest } = (await log.storedEvents?.(0)) ?? {};
  assert.deepEqual(rest, { events: 6, firstAt: 1000, recentEvents: 6 });
  assert.ok(bytes > 6 * 3000 && bytes < 6 * 3000 + 100_000, `${bytes}`);
  await log.close();
  assert.equal(statSync(file).size, bytes);
});
