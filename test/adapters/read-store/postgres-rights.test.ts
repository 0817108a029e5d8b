// A service whose user may not make anything in its database: somebody else has migrated it.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { sql } from 'drizzle-orm';
import postgres from 'postgres';
import { postgresReadStore } from '#src/adapters/read-store/postgres.ts';
import { needsPostgres, type PostgresServer, postgresServer } from '#test/support/postgres.ts';

const needs = { ...needsPostgres(), timeout: 60_000 };
let server: PostgresServer;
before(async () => {
  if (!needs.skip) server = await postgresServer();
});
after(() => server?.remove());

test(
  'postgres: a migrated database is opened by a user who may only read and write its rows',
  needs,
  async () => {
    const url = await server.newDatabase();
    const owner = postgres(url, { max: 1, onnotice: () => undefined });
    const name = `serving_${new URL(url).pathname.slice(-8)}`;
    const serving = new URL(url);
    serving.username = name;
    serving.password = 'serving';
    const store = postgresReadStore({ url: serving.href });
    try {
      await owner.unsafe(`create role ${name} login password 'serving'`);
      await assert.rejects(store.open());
      const migrating = postgresReadStore({ url });
      await migrating.open();
      await migrating.close();
      await owner.unsafe(`grant usage on schema drizzle to ${name};
      grant select on all tables in schema drizzle to ${name};
      grant select, insert, update, delete on all tables in schema public to ${name}`);
      const db = await store.open();
      await db.execute(sql`insert into "model_versions" ("model", "version") values ('tried', 1)`);
      await assert.rejects(db.execute(sql`create table "mine" ("id" text)`));
    } finally {
      await store.close();
      await owner.end({ timeout: 5 });
    }
  },
);
