// Postgres gone and back, and several processes over one Postgres.
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { sql } from 'drizzle-orm';
import { readMigrationFiles } from 'drizzle-orm/migrator';
import { projectBatch } from '#projections/batch.ts';
import { modelSet, readCheckpoint, tryProjectorLock } from '#projections/checkpoint.ts';
import { readModels } from '#projections/read-models.ts';
import { READ_MODELS } from '#projections/registry.ts';
import { rowsOf, tableShapes } from '#projections/rows.ts';
import { sqliteEventLog } from '#src/adapters/event-log/sqlite/event-log.ts';
import { MIGRATIONS_FOLDER } from '#src/adapters/read-store/migrations.ts';
import { postgresReadStore } from '#src/adapters/read-store/postgres.ts';
import { systemClock } from '#src/adapters/runtime/clock.ts';
import { Fault } from '#src/domain/refusal.ts';
import { startProgram } from '#test/support/event-log-process.ts';
import { appendAll, jobAppends, jobIdOf, PLAN, recorded } from '#test/support/job-histories.ts';
import { memoryLog } from '#test/support/memory-log.ts';
import { needsPostgres, type PostgresServer, postgresServer } from '#test/support/postgres.ts';
import { asStored, rowsAfter } from '#test/support/read-model-rows.ts';
import { allRows, runnerOver } from '#test/support/read-store.ts';

const SET = modelSet(READ_MODELS);
const NOTHING_TOLD = new Map<string, string>();

const PATIENCE_MS = 30_000;
const needs = { ...needsPostgres(), timeout: 120_000 };
const projectorScript = new URL('../../support/read-model-process.ts', import.meta.url).href;
let shared: Promise<PostgresServer> | null = null;
const server = () => {
  shared ??= postgresServer();
  return shared;
};
after(async () => (await shared)?.remove());

async function until(what: string, met: () => boolean | Promise<boolean>): Promise<void> {
  for (const end = Date.now() + PATIENCE_MS; !(await met()); await sleep(10)) {
    if (Date.now() > end) throw new Error(`waited too long for ${what}`);
  }
}

const unavailable = (error: unknown) => error instanceof Fault && error.code === 'read_models_unavailable';

test(
  'postgres: stopped and started again, reads fail as unavailable meanwhile and the rows catch up by themselves',
  needs,
  async (t) => {
    const { power, newDatabase } = await server();
    if (power === null) return t.skip('the server of TEST_DATABASE_URL is not ours to stop');
    const store = postgresReadStore({ url: await newDatabase() });
    const models = readModels(store, systemClock(), async () => true);
    const log = memoryLog();
    const runner = runnerOver(log, store, { batchSize: 3 });
    const first = await appendAll(log, jobAppends({ ...PLAN, seed: 1 }));
    assert.ok(await runner.caughtUp(first ?? '', PATIENCE_MS));
    assert.deepEqual(await store.health(), { ok: true });
    await power.stop();
    assert.deepEqual(await store.health(), { ok: false });
    await assert.rejects(models.job.find(jobIdOf(1)), unavailable);
    const second = await appendAll(
      log,
      [2, 3, 4].flatMap((seed) => jobAppends({ ...PLAN, seed })),
    );
    assert.equal(await runner.caughtUp(second ?? '', 50), false);
    await until('the lag to show', () => runner.lag().lagMs > 0);
    await power.start();
    assert.ok(await runner.caughtUp(second ?? '', PATIENCE_MS));
    assert.equal((await models.job.find(jobIdOf(4)))?.status, 'succeeded');
    assert.deepEqual(await allRows(await store.open()), asStored(await rowsAfter(recorded(log))));
    await runner.stop();
    await store.close();
  },
);

test('postgres: away at the start, it is found when it comes', needs, async (t) => {
  const { power, newDatabase } = await server();
  if (power === null) return t.skip('the server of TEST_DATABASE_URL is not ours to stop');
  const url = await newDatabase();
  await power.stop();
  const store = postgresReadStore({ url });
  const log = memoryLog();
  const last = await appendAll(log, jobAppends(PLAN));
  const runner = runnerOver(log, store);
  await assert.rejects(readModels(store, systemClock(), runner.ready).proof.recent(1), unavailable);
  await power.start();
  assert.ok(await runner.caughtUp(last ?? '', PATIENCE_MS));
  await runner.stop();
  await store.close();
});

test(
  'postgres: two processes over one database, the projecting one killed: the other takes over and no row differs',
  needs,
  async () => {
    const { newDatabase } = await server();
    const url = await newDatabase();
    const directory = mkdtempSync(join(tmpdir(), 'relay-two-'));
    const file = join(directory, 'log.sqlite');
    const log = await sqliteEventLog({ file });
    const fill = (from: number, to: number) =>
      Promise.all(
        Array.from({ length: to - from }, (_, n) =>
          appendAll(log, jobAppends({ ...PLAN, seed: from + n, answers: [500, 200] })),
        ),
      );
    await fill(0, 150);
    const processes = [
      startProgram(projectorScript, [file, url]),
      startProgram(projectorScript, [file, url]),
    ];
    const store = postgresReadStore({ url, connections: 3 });
    const db = await store.open();
    await until('some rows', async () => (await readCheckpoint(db, SET)) !== null);
    const filling = fill(150, 220);
    processes[0]?.child.kill('SIGKILL');
    await processes[0]?.ended;
    await filling;
    const head = await log.head();
    await until(
      'the other process to reach the head',
      async () => (await readCheckpoint(db, SET))?.position === head,
    );
    const events = await log.readAll({ after: null, max: 1_000_000 });
    assert.deepEqual(await allRows(db), asStored(await rowsAfter(events)));
    processes[1]?.child.kill('SIGKILL');
    await processes[1]?.ended;
    await log.close();
    await store.close();
    rmSync(directory, { recursive: true, force: true });
  },
);

test(
  'postgres: runners side by side all reach the head, and each event is projected once',
  needs,
  async () => {
    const url = await (await server()).newDatabase();
    const stores = [1, 2, 3].map(() => postgresReadStore({ url, connections: 2 }));
    const log = memoryLog();
    const runners = stores.map((store) => runnerOver(log, store, { batchSize: 7 }));
    for (let seed = 0; seed < 60; seed++)
      await appendAll(log, jobAppends({ ...PLAN, seed, answers: [500, 200] }));
    const head = (await log.head()) ?? '';
    const reached = await Promise.all(runners.map((runner) => runner.caughtUp(head, PATIENCE_MS)));
    assert.deepEqual(reached, [true, true, true]);
    const [store] = stores;
    assert.ok(store);
    assert.deepEqual(await allRows(await store.open()), asStored(await rowsAfter(recorded(log))));
    for (const runner of runners) await runner.stop();
    for (const one of stores) await one.close();
  },
);

test(
  'postgres: a projector that slept writes nothing: neither under the lock of another nor behind its checkpoint',
  needs,
  async () => {
    const url = await (await server()).newDatabase();
    const store = postgresReadStore({ url, connections: 3 });
    const db = await store.open();
    const projector = { db, models: READ_MODELS, set: SET, shapes: tableShapes(READ_MODELS) };
    const at = (position: string) => ({ position, origin: 'first', event: null });
    const held = await db.transaction(async (other) => {
      assert.equal(await tryProjectorLock(other), true);
      return projectBatch(projector, NOTHING_TOLD, [], null, at('1'));
    });
    assert.deepEqual(held, { outcome: 'busy' });
    assert.deepEqual(await projectBatch(projector, NOTHING_TOLD, [], null, at('1')), {
      outcome: 'projected',
    });
    assert.deepEqual(await projectBatch(projector, NOTHING_TOLD, [], at('1'), at('5')), {
      outcome: 'projected',
    });
    const [started] = jobAppends(PLAN);
    const event = started?.events[0];
    assert.ok(event);
    const late = [{ position: '2', event, facts: { receiptVerified: false, leaf: null } }];
    for (const from of [null, at('1'), { position: '5', origin: 'another log', event: null }]) {
      const outcome = await projectBatch(projector, NOTHING_TOLD, late, from, {
        position: '2',
        origin: from?.origin ?? 'first',
        event: null,
      });
      assert.deepEqual(outcome, { outcome: 'elsewhere', checkpoint: at('5') });
    }
    assert.deepEqual((await allRows(db)).jobs, []);
    await store.close();
  },
);

test('postgres: processes that start at once bring the schema to this version once', needs, async () => {
  const url = await (await server()).newDatabase();
  const stores = [1, 2, 3, 4].map(() => postgresReadStore({ url, connections: 1 }));
  const handles = await Promise.all(stores.map((store) => store.open()));
  const [db] = handles;
  assert.ok(db);
  const [migrated] = await rowsOf<{ count: string }>(
    db,
    sql`select count(*) from drizzle.__drizzle_migrations`,
  );
  const released = readMigrationFiles({ migrationsFolder: MIGRATIONS_FOLDER });
  assert.equal(Number(migrated?.count), released.length);
  for (const store of stores) await store.close();
});

test('postgres: statements are prepared, and read by index from the first row on', needs, async () => {
  const url = await (await server()).newDatabase();
  const store = postgresReadStore({ url, connections: 1 });
  const models = readModels(store, systemClock(), async () => true);
  await models.job.find('job_none');
  await models.proof.recent(10);
  const db = await store.open();
  const prepared = await rowsOf<{ statement: string }>(db, sql`select statement from pg_prepared_statements`);
  const named = prepared.filter(({ statement }) => /from "(jobs|proofs)"/.test(statement));
  assert.equal(named.length, 2);
  // One row on one page, and the planner knows it: reading the whole table would be cheaper, today.
  const log = memoryLog();
  const runner = runnerOver(log, store);
  assert.ok(await runner.caughtUp((await appendAll(log, jobAppends(PLAN))) ?? '', PATIENCE_MS));
  await runner.stop();
  await db.execute(sql.raw('analyze jobs'));
  const plan = await rowsOf<Record<string, string>>(db, sql.raw(`explain select * from jobs where id = 'x'`));
  assert.match(JSON.stringify(plan), /Index|Bitmap/);
  await store.close();
});

test(
  'postgres: a pool that lost a connection is given up, and whoever asks next gets a fresh one',
  needs,
  async () => {
    const url = await (await server()).newDatabase();
    const [store, other] = [postgresReadStore({ url }), postgresReadStore({ url })];
    const [before, killer] = [await store.open(), await other.open()];
    const [row] = await rowsOf<{ pid: number }>(before, sql`select pg_backend_pid() as pid`);
    assert.equal(await store.open(), before, 'the same handle while nothing is lost');
    await killer.execute(sql`select pg_terminate_backend(${row?.pid})`);
    await until('a fresh handle', async () => (await store.open()) !== before);
    const answers = Array.from({ length: 20 }, async () => rowsOf(await store.open(), sql`select 1 as one`));
    assert.equal((await Promise.all(answers)).length, 20);
    await store.close();
    await other.close();
  },
);
