// Rows that the role of the service may no longer read, while it runs: real Postgres.
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { sql } from 'drizzle-orm';
import postgres from 'postgres';
import { Projector } from '#projections/projector.ts';
import { rowsOf } from '#projections/rows.ts';
import { postgresReadStore } from '#src/adapters/read-store/postgres.ts';
import { systemClock } from '#src/adapters/runtime/clock.ts';
import { appendAll, jobAppends, judgeBySignature, PLAN } from '#test/support/given/job-histories.ts';
import { memoryLog } from '#test/support/log/memory-log.ts';
import { needsPostgres, type PostgresServer, postgresServer } from '#test/support/log/postgres.ts';
import { schemaOf, silent } from '#test/support/log/read-store.ts';
import { waitFor } from '#test/support/process/service.ts';

const needs = { ...needsPostgres(), timeout: 300_000 };
let shared: Promise<PostgresServer> | null = null;
after(async () => (await shared)?.remove());

/** A new database, its URL for a role that owns what it creates there and nothing else, and a client for its owner. */
async function databaseOfRole() {
  shared ??= postgresServer();
  const url = new URL(await (await shared).newDatabase());
  const owner = postgres(url.href, { max: 1, onnotice: () => undefined });
  const role = `relay_role_${url.pathname.slice(-12)}`;
  await owner.unsafe(`create role ${role} login password 'known'`);
  await owner.unsafe(`grant create on database ${url.pathname.slice(1)} to ${role}`);
  await owner.unsafe(`grant create on schema public to ${role}`);
  url.username = role;
  url.password = 'known';
  return { url: url.href, role, owner };
}

for (const [what, on] of [
  ['the schema', (schema: string) => `usage on schema "${schema}"`],
  ['one table', (schema: string) => `select on "${schema}".jobs`],
] as const)
  test(
    `postgres: ${what} is revoked from the role: after 30 s the read models are not ok, until it is granted`,
    needs,
    async () => {
      const { url, role, owner } = await databaseOfRole();
      const store = postgresReadStore({ url, connections: 2 });
      const system = systemClock();
      const later = { ms: 0 };
      const clock = { ...system, monotonic: () => system.monotonic() + later.ms };
      const log = memoryLog();
      await appendAll(log, jobAppends(PLAN));
      const runner = new Projector({ log, store, clock, logger: silent, judgeReceipt: judgeBySignature });
      await waitFor('the head', () => runner.reachedHead());
      assert.equal(runner.readable(), true);
      later.ms += 60_000;
      await waitFor('a look', () => runner.readable());

      const privilege = on((await schemaOf(log, store)) ?? '');
      await owner.unsafe(`revoke ${privilege} from ${role}`);
      await waitFor('the projector to fail', () => runner.state === 'store_failed');
      assert.deepEqual(await store.health(), { ok: true }, 'the database answers');
      assert.equal(runner.readable(), true, 'rows were read within the last 30 s');
      later.ms += 30_001;
      assert.equal(runner.readable(), false);

      await owner.unsafe(`grant ${privilege} to ${role}`);
      await waitFor('rows', () => runner.readable());
      await waitFor('the head', () => runner.reachedHead());
      const [row] = await rowsOf(await runner.open(), sql`select status from jobs`);
      assert.deepEqual(row, { status: 'succeeded' });
      await runner.stop();
      await store.close();
      await owner.end({ timeout: 5 });
    },
  );
