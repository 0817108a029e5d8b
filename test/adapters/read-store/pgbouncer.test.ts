// PgBouncer in front of PostgreSQL, with its defaults: in session mode the store works, with its settings; transaction mode
// is named as what it is.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { sql } from 'drizzle-orm';
import { type Db, rowsOf } from '#projections/rows.ts';
import { postgresReadStore } from '#src/adapters/read-store/postgres.ts';
import { databaseFacts } from '#src/adapters/read-store/postgres-check.ts';
import { needsProgram } from '#test/support/chain/requirements.ts';
import { needsPostgres, type PostgresServer, postgresServer } from '#test/support/log/postgres.ts';
import { fixedPort } from '#test/support/process/fixed-port.ts';
import { waitFor } from '#test/support/process/service.ts';
import { testFolder } from '#test/support/process/test-folder.ts';

const [database, pool] = [needsPostgres(), needsProgram('pgbouncer')];
const folder = testFolder('pgbouncer');
const OTHER_USER = 65534;

async function startPool(server: string, mode: 'session' | 'transaction') {
  const port = await fixedPort();
  const { hostname, port: serverPort, username, pathname } = new URL(server);
  const users = join(folder, 'users');
  writeFileSync(users, `"${username}" ""\n`);
  const config = join(folder, `${mode}.ini`);
  writeFileSync(
    config,
    `[databases]\n* = host=${hostname} port=${serverPort}\n[pgbouncer]\nlisten_addr=127.0.0.1\nlisten_port=${port}\nunix_socket_dir=\nauth_type=trust\nauth_file=${users}\npool_mode=${mode}\n`,
  );
  for (const path of [folder, users, config]) chmodSync(path, 0o755);
  // It refuses to run as root.
  const user = process.getuid?.() === 0 ? { uid: OTHER_USER, gid: OTHER_USER } : {};
  const child = spawn('pgbouncer', [config], { stdio: 'ignore', ...user });
  const url = `postgres://${username}@127.0.0.1:${port}${pathname}`;
  await waitFor('PgBouncer to answer', async () => {
    assert.equal(child.exitCode, null, 'pgbouncer has ended');
    const facts = await databaseFacts(url);
    return !('failure' in facts && facts.failure === 'ECONNREFUSED');
  });
  return {
    url,
    async stop() {
      child.kill('SIGTERM');
      if (child.exitCode === null) await once(child, 'exit');
    },
  };
}

describe('PgBouncer', { skip: database.skip || pool.skip }, () => {
  let server: PostgresServer;
  before(async () => {
    server = await postgresServer();
  });
  after(() => server?.remove());

  test('session mode: migrated, each handle in its schema with all settings, and the doctor agrees', async () => {
    const bouncer = await startPool(await server.newDatabase(), 'session');
    const store = postgresReadStore({ url: bouncer.url, connections: 3 });
    try {
      await store.shared();
      const settings = async (db: Db) => {
        const [row] = await rowsOf<{ path: string; timeout: string }>(
          db,
          sql`select current_setting('search_path') as path, current_setting('statement_timeout') as timeout`,
        );
        return row;
      };
      for (const schema of ['one', 'two', 'one']) {
        const db = await store.open(schema);
        const found = await Promise.all(Array.from({ length: 9 }, () => settings(db)));
        for (const row of found) assert.deepEqual(row, { path: schema, timeout: '10s' });
      }
      assert.deepEqual(await store.health(), { ok: true });
      const facts = await databaseFacts(bouncer.url);
      assert.ok(!('failure' in facts), JSON.stringify(facts));
    } finally {
      await store.close();
      await bouncer.stop();
    }
  });

  test('transaction mode: nothing is opened; store, health and doctor name it', async () => {
    const bouncer = await startPool(await server.newDatabase(), 'transaction');
    const store = postgresReadStore({ url: bouncer.url });
    try {
      await assert.rejects(store.shared(), /pool in transaction mode.*PgBouncer: pool_mode = session/);
      const health = await store.health();
      assert.match(health.ok ? '' : (health.refusal ?? ''), /pool in transaction mode/);
      const facts = await databaseFacts(bouncer.url);
      assert.match('failure' in facts ? facts.failure : '', /pool in transaction mode/);
    } finally {
      await store.close();
      await bouncer.stop();
    }
  });
});

test('a refusal of the server is in the health of the store', { skip: database.skip }, async () => {
  const server = await postgresServer();
  const url = new URL(await server.newDatabase());
  url.username = 'nobody_here';
  const store = postgresReadStore({ url: url.href });
  try {
    await assert.rejects(store.shared());
    const health = await store.health();
    assert.deepEqual(health, {
      ok: false,
      refusal: 'refused by the server: role "nobody_here" does not exist (28000)',
    });
  } finally {
    await store.close();
    await server.remove();
  }
});
