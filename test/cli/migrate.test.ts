// relay migrate: brings the schema of a shared database to this version; a repeat changes nothing.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import postgres from 'postgres';
import { needsPostgres, postgresServer } from '#test/support/log/postgres.ts';
import { runCli } from '#test/support/process/cli.ts';

describe('relay migrate', () => {
  test('without DATABASE_URL it cannot run', async () => {
    const { code, stdout, stderr } = await runCli(['migrate']);
    assert.deepEqual([code, stdout], [2, '']);
    assert.match(stderr, /^relay: DATABASE_URL is not set[^\n]*\n$/);
  });

  test('an unavailable database: one line, without the password', async () => {
    const env = { DATABASE_URL: 'postgres://relay:secret-word@127.0.0.1:1/relay' };
    const { code, stdout, stderr } = await runCli(['migrate'], { env });
    assert.deepEqual([code, stdout], [2, '']);
    assert.match(stderr, /^relay: the database could not be migrated: [^\n]*\n$/);
    assert.doesNotMatch(stderr, /secret-word/);
  });

  test('creates the tables; a second run changes nothing', needsPostgres(), async () => {
    const server = await postgresServer();
    try {
      const DATABASE_URL = await server.newDatabase();
      const tables = async () => {
        const client = postgres(DATABASE_URL, { max: 1 });
        const rows = await client`select tablename from pg_tables where schemaname = 'public' order by 1`;
        await client.end({ timeout: 5 });
        return rows.map(({ tablename }) => tablename);
      };
      assert.deepEqual(await tables(), []);
      assert.equal((await runCli(['migrate'], { env: { DATABASE_URL } })).code, 0);
      const made = await tables();
      assert.notDeepEqual(made, []);
      assert.equal((await runCli(['migrate'], { env: { DATABASE_URL } })).code, 0);
      assert.deepEqual(await tables(), made);
    } finally {
      await server.remove();
    }
  });
});
