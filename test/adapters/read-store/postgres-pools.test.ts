// A pool for each generation that is in use: while a rebuild flips, readers and the projector open one and the other in turns.
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { sql } from 'drizzle-orm';
import { type Db, rowsOf } from '#projections/rows.ts';
import { postgresReadStore } from '#src/adapters/read-store/postgres.ts';
import { needsPostgres, type PostgresServer, postgresServer } from '#test/support/log/postgres.ts';
import { waitFor } from '#test/support/process/service.ts';

const needs = { ...needsPostgres(), timeout: 300_000 };
let shared: Promise<PostgresServer> | null = null;
after(async () => (await shared)?.remove());

async function given(options: { readonly unusedMs?: number } = {}) {
  shared ??= postgresServer();
  const url = await (await shared).newDatabase();
  const store = postgresReadStore({ url, connections: 1, ...options });
  const watching = await store.shared();
  return {
    store,
    /** Opens a connection, and returns its process. */
    async pidOf(db: Db): Promise<number> {
      const [row] = await rowsOf<{ pid: number }>(db, sql`select pg_backend_pid() as pid`);
      return row?.pid ?? assert.fail();
    },
    async isConnected(pid: number): Promise<boolean> {
      return (await rowsOf(watching, sql`select 1 from pg_stat_activity where pid = ${pid}`)).length > 0;
    },
  };
}

test('postgres: two generations that are opened in turns keep their connections', needs, async () => {
  const { store, pidOf } = await given();
  const [first, second] = [await store.open('one'), await store.open('two')];
  const pids = [await pidOf(first), await pidOf(second)];
  for (let turn = 0; turn < 5; turn++) {
    assert.deepEqual([await store.open('one'), await store.open('two')], [first, second]);
    assert.deepEqual([await pidOf(first), await pidOf(second)], pids);
  }
  await store.close();
});

test('postgres: the connections of a generation that is used no longer are closed', needs, async () => {
  const { store, pidOf, isConnected } = await given({ unusedMs: 50 });
  const one = await pidOf(await store.open('one'));
  const second = await store.open('two');
  const two = await pidOf(second);
  await waitFor('the first to be closed', async () => !(await isConnected(one)));
  assert.equal(await isConnected(two), true, 'the last that was opened is kept');
  assert.equal(await store.open('two'), second);
  await store.close();
});

test('postgres: however many generations are opened, a few pools are kept', needs, async () => {
  const { store, pidOf, isConnected } = await given({ unusedMs: 50 });
  const pids: number[] = [];
  for (const schema of ['one', 'two', 'three', 'four', 'five'])
    pids.push(await pidOf(await store.open(schema)));
  await waitFor('the first ones to be closed', async () => {
    const connected = await Promise.all(pids.map(isConnected));
    return connected.filter(Boolean).length <= 3 && connected.at(-1);
  });
  await store.close();
});
