// Rows that the server refuses in the middle of their COPY: the driver gives no error, and the server waits.
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { sql } from 'drizzle-orm';
import { rowsOf } from '#projections/rows.ts';
import { postgresReadStore } from '#src/adapters/read-store/postgres.ts';
import { needsPostgres, type PostgresServer, postgresServer } from '#test/support/log/postgres.ts';

let server: PostgresServer | null = null;
after(() => server?.remove());

test('postgres: a COPY that is refused ends, and leaves no row', needsPostgres(), async () => {
  server = await postgresServer();
  const url = await server.newDatabase();
  const store = postgresReadStore({ url, connections: 1, copyMs: 500 });
  const patient = postgresReadStore({ url, connections: 1, copyMs: 120_000 });
  const shared = await patient.shared();
  await shared.execute(sql`create schema one`);
  await shared.execute(sql`create table one.kept as select 'k 0' as key`);
  await shared.execute(sql`create unique index on one.kept (key)`);
  const copied = async (into: typeof store, first: number, count: number) => {
    const text = Array.from({ length: count }, (_, n) => `k ${first + n}\n`).join('');
    return into.copyRows?.('one', { sql: 'select true', params: [] }, [
      { table: 'kept', columns: ['key'], text },
    ]);
  };
  // Much more than the server has read when it refuses the first.
  for (const count of [1, 100_000]) await assert.rejects(copied(store, 0, count));
  assert.equal(await copied(patient, 1, 1), true);
  const kept = await rowsOf(shared, sql`select key from one.kept order by key`);
  assert.deepEqual([...kept], [{ key: 'k 0' }, { key: 'k 1' }]);
  await Promise.all([store.close(), patient.close()]);
});
