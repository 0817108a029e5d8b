// What the embedded stores take, and how long the disk lasts, as the metrics and the doctor state it.
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { mkdirSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { sqliteEventLog } from '#src/adapters/event-log/sqlite/event-log.ts';
import { diskUse } from '#src/app/disk.ts';
import { checkDisk, judgeDisk } from '#src/app/doctor/disk.ts';
import { readConfig } from '#src/config.ts';
import { testFolder } from '#test/support/process/test-folder.ts';

const folder = testFolder('disk');
const DAY = 86_400_000;

/** A log with an event a day, the last one now. */
async function logOf(name: string, days: number) {
  const dataDir = join(folder, name);
  mkdirSync(dataDir);
  let now = Date.now() - days * DAY;
  const log = await sqliteEventLog({ file: join(dataDir, 'events.db'), now: () => now });
  for (let day = 0; day <= days; day++, now += DAY) {
    const event = { id: randomUUID(), type: 'T', data: { text: 'x'.repeat(5000) }, metadata: {} };
    await log.append(`s-${day}`, 'no_stream', [event]);
  }
  return { log, dataDir, config: readConfig({ DATA_DIR: dataDir }) };
}

test('the bytes of the log and of the read models, the free ones, and the growth', async () => {
  const { log, dataDir, config } = await logOf('used', 10);
  const models = join(dataDir, 'read-models', 'base', '1');
  mkdirSync(models, { recursive: true });
  writeFileSync(join(models, '1'), Buffer.alloc(700));
  writeFileSync(join(dataDir, 'read-models', 'held'), Buffer.alloc(11));
  const used = await diskUse(config, log, Date.now());
  const sizes = ['events.db', 'events.db-wal', 'events.db-shm'].map(
    (name) => statSync(join(dataDir, name)).size,
  );
  assert.equal(
    used.logBytes,
    sizes.reduce((sum, size) => sum + size),
  );
  assert.equal(used.readModelsBytes, 711);
  assert.ok(used.freeBytes > 0);
  const rate = used.growthBytesPerDay ?? 0;
  assert.ok(rate > 5000 && rate < 20_000, `${rate}`);
  const shared = await diskUse({ ...config, databaseUrl: 'postgres://db' }, log, Date.now());
  assert.equal(shared.readModelsBytes, null);
  await log.close();
});

const said = async (config: Parameters<typeof checkDisk>[0]) => (await checkDisk(config)).message;

test('the doctor: how long the disk lasts, or why that is not known', async () => {
  const grown = await logOf('grown', 3);
  await grown.log.close();
  assert.match(
    await said(grown.config),
    /at the rate of the event log in the last 7 days, 0\.0 MB a day, the disk lasts more than 10 years, without the backups on it$/,
  );
  assert.match(
    await said({ ...grown.config, databaseUrl: 'postgres://db' }),
    /; the disk of Postgres is not seen here$/,
  );
  const young = await logOf('young', 0);
  await young.log.close();
  assert.match(await said(young.config), /is not known yet: the event log is less than a day old$/);
  assert.match(await said(readConfig({ DATA_DIR: join(folder, 'none') })), /is not known yet$/);
  const broken = join(folder, 'broken');
  mkdirSync(broken);
  writeFileSync(join(broken, 'events.db'), 'no database');
  assert.match(await said(readConfig({ DATA_DIR: broken })), /is not known: see the line event_log$/);
  const { state, message } = await checkDisk({ ...young.config, eventStoreUrl: 'esdb://log' });
  assert.deepEqual([state, /servers last is not seen here$/.test(message)], ['ok', true]);
});

test('the doctor: a disk that lasts less than 14 days is a warning, as is one with less than 1 GiB', () => {
  const GIB = 2 ** 30;
  for (const [free, rate, state, last] of [
    [14 * GIB, GIB, 'ok', /, 1074 MB a day, the disk lasts 14 days, without the backups on it$/],
    [
      13.9 * GIB,
      GIB,
      'warning',
      /the disk lasts 13 days, without the backups on it: less than 14 days, enlarge it$/,
    ],
    [2 * GIB, 0, 'ok', /, 0\.0 MB a day, the disk lasts more than 10 years, without the backups on it$/],
    [0.9 * GIB, 'young', 'warning', /less than 1 GiB, free some soon$/],
    [0.09 * GIB, 1, 'problem', /less than 0\.1 GiB, free some before the event log is full$/],
  ] as const) {
    const found = judgeDisk('/data', free, rate);
    assert.equal(found.state, state, found.message);
    assert.match(found.message, last);
  }
});
