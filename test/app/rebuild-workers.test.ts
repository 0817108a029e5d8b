// A rebuild by worker threads: each has its own connections to the log and the database.
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import postgres from 'postgres';
import { sqliteEventLog } from '#src/adapters/event-log/sqlite/event-log.ts';
import { rebuildReadModels } from '#src/app/rebuild.ts';
import { readConfig } from '#src/config.ts';
import { appendNext } from '#test/support/contract/event-log-fixtures.ts';
import { jobAppends, newEvent, PLAN } from '#test/support/given/job-histories.ts';
import { needsPostgres, type PostgresServer, postgresServer } from '#test/support/log/postgres.ts';

describe('a rebuild by worker threads', needsPostgres(), () => {
  let server: PostgresServer;
  let url: string;
  const dataDir = mkdtempSync(join(tmpdir(), 'relay-workers-'));
  const rebuilt = (options: Parameters<typeof rebuildReadModels>[1]) =>
    rebuildReadModels(readConfig({ DATA_DIR: dataDir, DATABASE_URL: url }), { batchSize: 40, ...options });

  before(async () => {
    server = await postgresServer();
    url = await server.newDatabase();
    const log = await sqliteEventLog({ file: join(dataDir, 'events.db') });
    for (let seed = 0; seed < 30; seed++)
      for (const { stream, events } of jobAppends({ ...PLAN, seed }))
        await appendNext(log, stream, events.map(newEvent));
    await log.close();
  });
  after(async () => {
    await server.remove();
    rmSync(dataDir, { recursive: true, force: true });
  });

  test('an error of one ends the others and is the error of the rebuild, with its cause', async () => {
    const client = postgres(url, { max: 1, onnotice: () => undefined });
    try {
      const spoiling = rebuilt({
        workers: 2,
        onProgress: () => {
          void client`select schema from read_model_generations where state = 'building'`.then(([row]) =>
            client.unsafe(`drop table if exists "${row?.schema}".jobs cascade`),
          );
        },
      });
      await assert.rejects(spoiling, (error: Error) => {
        const said = [error, error.cause].map((one) => `${one}`).join(' ');
        return error instanceof Error && /jobs|run it again/.test(said);
      });
      await client`delete from read_model_generations`;
    } finally {
      await client.end();
    }
  });

  test('their rows are those that one thread makes', async () => {
    const { outcome, rows } = await rebuilt({ workers: 3 });
    assert.deepEqual([outcome, rows.jobs, rows.receipts], ['built', 30, 30]);
    assert.equal((await rebuilt({ check: true })).outcome, 'equal');
  });
});
