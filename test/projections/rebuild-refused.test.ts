// Who may not rebuild: a version older than the rows or their schema, and a user of the database who could not. What is
// refused has changed nothing.
import assert from 'node:assert/strict';
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, test } from 'node:test';
import postgres from 'postgres';
import { CannotRebuild } from '#projections/rebuild-lock.ts';
import { READ_MODELS } from '#projections/registry.ts';
import { writeModelVersions } from '#projections/versions.ts';
import { MIGRATIONS_FOLDER } from '#src/adapters/read-store/migrations.ts';
import { migrateOnce, postgresReadStore } from '#src/adapters/read-store/postgres.ts';
import { postgresRebuildStore } from '#src/adapters/read-store/postgres-rebuild.ts';
import { appendAll, jobAppends, PLAN, recorded } from '#test/support/job-histories.ts';
import { memoryLog } from '#test/support/memory-log.ts';
import { needsPostgres } from '#test/support/postgres.ts';
import { asStored, rowsAfter } from '#test/support/read-model-rows.ts';
import { allRows } from '#test/support/read-store.ts';
import {
  leftovers,
  postgresRebuilds,
  project,
  rebuildWith,
  storeBefore,
} from '#test/support/rebuild-world.ts';

const needs = needsPostgres();
const harness = postgresRebuilds(needs);
const folder = mkdtempSync(join(tmpdir(), 'relay-newer-'));
const clients: postgres.Sql[] = [];
let roles = 0;

/** This version's migrations and one more: a column, as a newer version would have it. */
function newerMigrations(): string {
  const newer = join(folder, 'migrations');
  cpSync(MIGRATIONS_FOLDER, newer, { recursive: true });
  const file = join(newer, 'meta/_journal.json');
  const journal = JSON.parse(readFileSync(file, 'utf8'));
  const last = journal.entries.at(-1);
  journal.entries.push({ ...last, idx: last.idx + 1, when: last.when + 1, tag: '9999_region' });
  writeFileSync(file, JSON.stringify(journal));
  writeFileSync(join(newer, '9999_region.sql'), 'ALTER TABLE "jobs" ADD COLUMN "region" text;');
  return newer;
}

async function given() {
  const { url, store, rebuild } = await harness.fresh();
  const log = memoryLog();
  for (let seed = 0; seed < 3; seed++) await appendAll(log, jobAppends({ ...PLAN, seed }));
  const client = postgres(url, { max: 1, onnotice: () => undefined });
  clients.push(client);
  return { url, store, rebuild, log, client };
}

/** A user of the database who may do nothing yet, and the URL for it. */
async function newRole(url: string, client: postgres.Sql) {
  const name = `relay_role_${Date.now()}_${roles++}`;
  await client.unsafe(`create role ${name} login password 'known'`);
  const own = new URL(url);
  own.username = name;
  own.password = 'known';
  return { name, url: own.href, database: own.pathname.slice(1) };
}

const newerJobs = READ_MODELS.filter(({ name }) => name === 'job').map(({ name, version }) => ({
  name,
  version: version + 1,
}));
const proofs = READ_MODELS.filter(({ name }) => name === 'proof');
/** All is refused before anything is done. */
const onProgress = () => assert.fail('it has begun');
const WAYS = [{}, { check: true }, { models: proofs }, { models: proofs, check: true }];

describe('a rebuild is refused', { ...needs, timeout: 120_000 }, () => {
  after(async () => {
    for (const client of clients) await client.end({ timeout: 5 });
    await harness.end();
    rmSync(folder, { recursive: true, force: true });
  });

  test('to a version that does not know the schema; also where that comes in the middle', async () => {
    const { url, store, rebuild, log } = await given();
    await project(log, store);
    const db = await store.open();
    const migrationsFolder = newerMigrations();
    const isNewerSchema = (error: Error) =>
      error instanceof CannotRebuild && /schema of a newer version/.test(error.message);
    const meanwhile = storeBefore(url, 9, () => migrateOnce(url, migrationsFolder));
    await assert.rejects(rebuildWith(meanwhile, log), isNewerSchema);
    const rows = await allRows(db);
    assert.ok(rows.jobs?.every((row) => Object.hasOwn(Object(row), 'region')));
    for (const options of WAYS) await assert.rejects(rebuild(log, { ...options, onProgress }), isNewerSchema);
    assert.deepEqual(await allRows(db), rows);
    await rebuildWith(postgresRebuildStore({ url, migrationsFolder }), log);
    assert.deepEqual(await leftovers(db), []);
  });

  test('to a version older than any rows; also where those come in the middle', async () => {
    for (const check of [false, true]) {
      const { url, store, rebuild, log, client } = await given();
      await project(log, store);
      const db = await store.open();
      await client`update jobs set attempts = 9`;
      const rows = await allRows(db);
      const isNewerRows = (error: Error) =>
        error instanceof CannotRebuild && /newer version .* told the rows \(job\)/.test(error.message);
      const meanwhile = storeBefore(url, 9, () => writeModelVersions(db, newerJobs));
      await assert.rejects(rebuildWith(meanwhile, log, { check }), isNewerRows);
      for (const options of WAYS) await assert.rejects(rebuild(log, { ...options, onProgress }), isNewerRows);
      assert.deepEqual(await allRows(db), rows);
      const [stored] = await client`select version from model_versions where model = 'job'`;
      assert.equal(stored?.version, newerJobs[0]?.version);
    }
  });

  test('to rows of another log, also where those come in the middle', async () => {
    const { url, store, log } = await given();
    const db = await store.open();
    const cluster = memoryLog();
    await appendAll(cluster, jobAppends({ ...PLAN, seed: 9 }));
    // There are none at the beginning.
    const meanwhile = storeBefore(url, 9, () => project(cluster, store));
    await assert.rejects(rebuildWith(meanwhile, log), {
      message:
        'the live rows are of another event log: check EVENTSTORE_URL, DATA_DIR and DATABASE_URL, or say --other-log',
    });
    assert.deepEqual(await allRows(db), asStored(await rowsAfter(recorded(cluster))));
  });

  test('to a user who may not make a schema or tables, before anything is done', async () => {
    const { url, store, log, client } = await given();
    await project(log, store);
    const role = await newRole(url, client);
    const refusal = async (check = false) => {
      const error = await rebuildWith(postgresRebuildStore({ url: role.url }), log, { check }).catch(
        (thrown: unknown) => thrown,
      );
      return error instanceof CannotRebuild ? error.message : error;
    };
    const noSchema = `the user ${role.name} may not make a schema in the database ${role.database}`;
    assert.deepEqual([await refusal(), await refusal(true)], [noSchema, noSchema]);
    await client.unsafe(`grant create on database ${role.database} to ${role.name};
      revoke create on schema public from public`);
    assert.equal(await refusal(), `the user ${role.name} may not make tables in the schema public`);
    await client.unsafe(`grant create on schema public to ${role.name}`);
    const [owner] = await client`select current_user::text as name`;
    assert.equal(
      await refusal(),
      `the table decisions is of the user ${owner?.name}, and ${role.name} may not replace it: rebuild as that user`,
    );
    assert.deepEqual(await leftovers(await store.open()), []);
  });
});

test('by another user who may, the tables stay those of the user who has them', needs, async () => {
  const own = postgresRebuilds(needs);
  const { url } = await own.fresh();
  const client = postgres(url, { max: 1, onnotice: () => undefined });
  const role = await newRole(url, client);
  await client.unsafe(`grant create on schema public to ${role.name};
    grant create on database ${role.database} to ${role.name}`);
  const store = postgresReadStore({ url: role.url, connections: 2 });
  try {
    const log = memoryLog();
    await appendAll(log, jobAppends(PLAN));
    await project(log, store);
    const owners = () => client`select relname, relkind, relowner::regrole::text as owner from pg_class
      where relnamespace = 'public'::regnamespace order by 1`;
    const before = [...(await owners())];
    assert.ok(before.length > 10 && before.every(({ owner }) => owner === role.name));
    await rebuildWith(postgresRebuildStore({ url }), log);
    assert.deepEqual([...(await owners())], before);
    await appendAll(log, jobAppends({ ...PLAN, seed: 1 }));
    await project(log, store);
    assert.deepEqual(await allRows(await store.open()), asStored(await rowsAfter(recorded(log))));
  } finally {
    await store.close();
    await client.end({ timeout: 5 });
    await own.end();
  }
});
