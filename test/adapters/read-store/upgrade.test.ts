// Stores as the first release left them: its one migration, its models, its checkpoint at the log's head.
import assert from 'node:assert/strict';
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { test } from 'node:test';
import { sql } from 'drizzle-orm';
import { drizzle } from 'drizzle-orm/postgres-js';
import { migrate } from 'drizzle-orm/postgres-js/migrator';
import postgres from 'postgres';
import { modelSet } from '#projections/checkpoint.ts';
import { readModels } from '#projections/read-models.ts';
import { READ_MODELS } from '#projections/registry.ts';
import { type Db, rowsOf, tableShapes, writeParts } from '#projections/rows.ts';
import { readModelVersions } from '#projections/versions.ts';
import { MIGRATIONS_FOLDER, schemaVersion } from '#src/adapters/read-store/migrations.ts';
import { pgliteReadStore } from '#src/adapters/read-store/pglite.ts';
import { postgresReadStore } from '#src/adapters/read-store/postgres.ts';
import { postgresRebuildStore } from '#src/adapters/read-store/postgres-rebuild.ts';
import { systemClock } from '#src/adapters/runtime/clock.ts';
import type { Logger } from '#src/ports/logger.ts';
import { appendAll, jobAppends, PLAN, recorded } from '#test/support/job-histories.ts';
import { needsPostgres, postgresServer } from '#test/support/postgres.ts';
import { asStored, rowsAfter } from '#test/support/read-model-rows.ts';
import { decidedLog, FIRST_MODELS, projectWith } from '#test/support/read-model-versions.contract.ts';
import { allRows, silent } from '#test/support/read-store.ts';
import { rebuildWith } from '#test/support/rebuild-world.ts';

const needs = { ...needsPostgres(), timeout: 120_000 };

/** The migrations of the first release alone. */
function firstMigrations(): string {
  const folder = mkdtempSync(join(tmpdir(), 'relay-migrations-'));
  cpSync(MIGRATIONS_FOLDER, folder, { recursive: true });
  const path = join(folder, 'meta', '_journal.json');
  const journal = JSON.parse(readFileSync(path, 'utf8')) as { entries: unknown[] };
  writeFileSync(path, JSON.stringify({ ...journal, entries: journal.entries.slice(0, 1) }));
  return folder;
}

/** Tables as the first release knew them: without what later migrations added. */
const firstShapes = tableShapes(FIRST_MODELS)
  .filter(({ name }) => name !== 'monitoring_hours')
  .map((shape) => ({ ...shape, columns: shape.columns.filter(([, column]) => column !== 'durations') }));

const tablesOf = async (db: Db) =>
  (
    await rowsOf<{ name: string }>(
      db,
      sql`select table_name as name from information_schema.tables where table_schema = 'public'`,
    )
  ).map(({ name }) => name);

test(
  'postgres: a database of the first release is migrated and its new model told from the beginning',
  needs,
  async () => {
    const server = await postgresServer();
    const migrations = firstMigrations();
    try {
      const url = await server.newDatabase();
      const client = postgres(url, { max: 2, onnotice: () => undefined });
      const db = drizzle(client);
      await migrate(db, { migrationsFolder: migrations });
      assert.ok(!(await tablesOf(db)).includes('decisions'));
      const log = await decidedLog();
      // Its runner knew nothing of what later migrations bring: its rows are written as they were.
      const [first] = recorded(log);
      const { doc, ctes } = writeParts(firstShapes, await rowsAfter(recorded(log)));
      const parts = [sql`doc as materialized (select ${doc}::text::json as d)`, ...ctes];
      await db.execute(sql`with ${sql.join(parts, sql`, `)} insert into checkpoints ("id", "position", "origin")
        values (${modelSet(FIRST_MODELS)}, ${await log.head()}, ${first?.id})`);
      assert.equal((await rowsOf(db, sql`select from checkpoints where id = 'live'`)).length, 1);
      await client.end({ timeout: 5 });

      const store = postgresReadStore({ url });
      const warned: unknown[] = [];
      const logger: Logger = { ...silent, warn: (message, fields) => void warned.push([message, fields]) };
      await projectWith(READ_MODELS, log, store, 200, logger);
      const told = asStored(await rowsAfter(recorded(log)));
      const minutes = (told.monitoring_minutes ?? []) as readonly { minute: string; succeeded: number }[];
      assert.deepEqual(await allRows(await store.open()), {
        ...told,
        monitoring_minutes: minutes.map((row) => ({ ...row, durations: null })),
        monitoring_hours: [],
      });
      assert.deepEqual(warned, [
        [
          'rows of an older version of the read models: run `relay rebuild monitoring`',
          { models: [{ model: 'monitoring', stored: 1, build: 2 }] },
        ],
      ]);
      const [start = ''] = minutes.map(({ minute }) => minute);
      const asked = readModels(store, systemClock(), async () => true).monitoring;
      const unknown = { start, succeeded: 1, failed: 0, durationMs: null };
      assert.deepEqual(await asked.series(start, [start]), { buckets: [unknown], durationMs: null });
      const stamped = await readModelVersions(await store.open());
      assert.deepEqual(
        [...stamped.keys()].sort(),
        ['decision', 'transparency'],
        'the others were told by the version that wrote none',
      );
      // Before the rebuild the hours hold only what came since; after it they hold all.
      const startedAtMs = PLAN.startedAtMs + 86_400_000;
      await appendAll(log, jobAppends({ ...PLAN, seed: 2, startedAtMs }));
      await projectWith(READ_MODELS, log, store);
      const finished = async () =>
        (await asked.summary(startedAtMs + 3_600_000, 2 * 86_400_000)).stats.recentSucceeded;
      assert.equal(((await allRows(await store.open())).monitoring_hours ?? []).length, 1);
      assert.equal(await finished(), 2);
      const monitoring = READ_MODELS.filter(({ name }) => name === 'monitoring');
      await rebuildWith(postgresRebuildStore({ url }), log, { models: monitoring });
      assert.deepEqual(await allRows(await store.open()), asStored(await rowsAfter(recorded(log))));
      await (await store.open()).execute(sql`delete from monitoring_minutes`);
      assert.equal(await finished(), 2, 'hours are read from now on');
      await store.close();
    } finally {
      rmSync(migrations, { recursive: true, force: true });
      await server.remove();
    }
  },
);

test('pglite: files of another schema are thrown away, and everything is replayed', {
  timeout: 120_000,
}, async () => {
  const directory = mkdtempSync(join(tmpdir(), 'relay-upgrade-'));
  const migrations = firstMigrations();
  const warnings: string[] = [];
  const logger: Logger = { ...silent, warn: (message) => void warnings.push(message) };
  try {
    const log = await decidedLog();
    const first = pgliteReadStore({ directory, logger });
    // Seconds on a busy machine, and no part of the replay.
    await first.open();
    await projectWith(FIRST_MODELS, log, first);
    await first.close();
    assert.notEqual(schemaVersion(migrations), schemaVersion());
    const state = new DatabaseSync(join(directory, 'lock.sqlite'));
    const marked = state
      .prepare("update whole set schema = ? where part = 'files'")
      .run(schemaVersion(migrations));
    state.close();
    assert.equal(Number(marked.changes), 1, 'closed in order');

    const store = pgliteReadStore({ directory, logger });
    const checkpoints = await rowsOf(await store.open(), sql`select from checkpoints`);
    assert.equal(checkpoints.length, 0, 'nothing of the earlier files is left');
    await projectWith(READ_MODELS, log, store);
    assert.deepEqual(await allRows(await store.open()), asStored(await rowsAfter(recorded(log))));
    await store.close();
    assert.deepEqual(warnings, [], 'an update is nothing to worry about');
  } finally {
    rmSync(directory, { recursive: true, force: true });
    rmSync(migrations, { recursive: true, force: true });
  }
});
