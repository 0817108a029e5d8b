// Postgres gone and back, and several processes over one Postgres.
import assert from 'node:assert/strict';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { sql } from 'drizzle-orm';
import { Projection, readHead } from '#projections/projection.ts';
import { purgeOnce } from '#projections/purge.ts';
import { readModels } from '#projections/read-models.ts';
import { READ_MODELS } from '#projections/registry.ts';
import { rowsOf } from '#projections/rows.ts';
import { sqliteEventLog } from '#src/adapters/event-log/sqlite/event-log.ts';
import { postgresReadStore } from '#src/adapters/read-store/postgres.ts';
import { systemClock } from '#src/adapters/runtime/clock.ts';
import { Fault } from '#src/domain/refusal.ts';
import type { RecordedEvent } from '#src/ports/event-log.ts';
import {
  appendAll,
  jobAppends,
  jobIdOf,
  judgeBySignature,
  PLAN,
  recorded,
} from '#test/support/given/job-histories.ts';
import { startProgram } from '#test/support/log/event-log-process.ts';
import { memoryLog } from '#test/support/log/memory-log.ts';
import { needsPostgres, type PostgresServer, postgresServer } from '#test/support/log/postgres.ts';
import { asStored, rowsAfter } from '#test/support/log/read-model-rows.ts';
import {
  allRows,
  assertFolded,
  modelsOver,
  project,
  reached,
  rowsFor,
  runnerOver,
  servedBy,
  silent,
} from '#test/support/log/read-store.ts';
import { rootPath } from '#test/support/process/runtime.ts';

const PATIENCE_MS = 100_000;
const needs = needsPostgres();
const projectorScript = new URL('../../support/log/read-model-process.ts', import.meta.url).href;
let shared: Promise<PostgresServer> | null = null;
const server = () => {
  shared ??= postgresServer({ own: true });
  return shared;
};
describe('postgres stops and starts, and several processes share it', needs, () => {
  after(async () => (await shared)?.remove());

  async function until(what: string, met: () => boolean | Promise<boolean>): Promise<void> {
    for (const end = Date.now() + PATIENCE_MS; !(await met()); await sleep(10)) {
      if (Date.now() > end) throw new Error(`waited too long for ${what}`);
    }
  }

  const unavailable = (error: unknown) => error instanceof Fault && error.code === 'read_models_unavailable';

  test('postgres: stopped and started again, reads fail as unavailable meanwhile and the rows catch up by themselves', async (t) => {
    const { power, newDatabase } = await server();
    if (power === null) return t.skip('the server of TEST_DATABASE_URL is not ours to stop');
    const store = postgresReadStore({ url: await newDatabase() });
    const log = memoryLog();
    const runner = runnerOver(log, store, { batchSize: 3 });
    const models = readModels({
      store: runner,
      clock: systemClock(),
      logger: silent,
      ready: async () => true,
    });
    const first = await appendAll(log, jobAppends({ ...PLAN, seed: 1 }));
    await reached(runner, first);
    assert.deepEqual(await store.health(), { ok: true });
    await power.stop();
    assert.equal((await store.health()).ok, false);
    await assert.rejects(models.job.find(jobIdOf(1)), unavailable);
    const second = await appendAll(
      log,
      [2, 3, 4].flatMap((seed) => jobAppends({ ...PLAN, seed })),
    );
    assert.equal(await runner.caughtUp(second ?? '', 50), false);
    await until('the lag to show', () => runner.lag().lagMs > 0);
    await power.start();
    await reached(runner, second);
    assert.equal((await models.job.find(jobIdOf(4)))?.status, 'succeeded');
    await assertFolded(log, store);
    await runner.stop();
    await store.close();
  });

  test('postgres: away at the start, it is found when it comes', async (t) => {
    const { power, newDatabase } = await server();
    if (power === null) return t.skip('the server of TEST_DATABASE_URL is not ours to stop');
    const url = await newDatabase();
    await power.stop();
    const store = postgresReadStore({ url });
    const log = memoryLog();
    const last = await appendAll(log, jobAppends(PLAN));
    const runner = runnerOver(log, store);
    await assert.rejects(servedBy(runner).proof.recent(1), unavailable);
    await power.start();
    await reached(runner, last);
    await runner.stop();
    await store.close();
  });

  test('postgres: two processes over one database, the projecting one killed: the other takes over and no row differs', async () => {
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
    const db = await rowsFor(log, store);
    await until('some rows', async () => (await readHead(db)).position !== null);
    const filling = fill(150, 220);
    processes[0]?.child.kill('SIGKILL');
    await processes[0]?.ended;
    await filling;
    const head = await log.head();
    await until('the other process to reach the head', async () => (await readHead(db)).position === head);
    const events = await log.readAll({ after: null, max: 1_000_000 });
    assert.deepEqual(await allRows(db), asStored(await rowsAfter(events)));
    processes[1]?.child.kill('SIGKILL');
    await processes[1]?.ended;
    await log.close();
    await store.close();
    rmSync(directory, { recursive: true, force: true });
  });

  test('postgres: runners side by side all reach the head, and each event is projected once', async () => {
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
    await assertFolded(log, store);
    for (const runner of runners) await runner.stop();
    for (const one of stores) await one.close();
  });

  test('postgres: a projector that was overtaken while it slept writes nothing', async () => {
    const url = await (await server()).newDatabase();
    const store = postgresReadStore({ url, connections: 3 });
    const log = memoryLog();
    await appendAll(log, jobAppends(PLAN));
    const events = recorded(log);
    const [first, second] = [events.slice(0, 1), events.slice(1)];
    const db = await rowsFor(log, store);
    const head = await readHead(db);
    const options = { models: READ_MODELS, judgeReceipt: judgeBySignature, log, cachedRows: 100 };
    const [slow, quick] = [new Projection(head, options), new Projection(head, options)];
    const by = async (projection: Projection, events: readonly RecordedEvent[]) =>
      projection.write(db, await projection.fold(db, events));
    assert.equal(await by(quick, first), true);
    assert.equal(await by(quick, second), true);
    const before = await allRows(db);
    assert.equal(await by(slow, first), false);
    assert.deepEqual(await allRows(db), before);
    assert.equal((await readHead(db)).position, await log.head());
    // A purge counts as a write: what it deleted is not written again.
    const purging = new Projection(await readHead(db), options);
    assert.deepEqual(await purgeOnce(db, { jobs: '2027', receipts: null }), { gone: 2, more: false });
    await appendAll(log, jobAppends({ ...PLAN, seed: 2 }));
    assert.equal(await by(purging, recorded(log)), false);
    await store.close();
  });

  test('postgres: processes that start at once bring the schema to this version once', async () => {
    const url = await (await server()).newDatabase();
    const stores = [1, 2, 3, 4].map(() => postgresReadStore({ url, connections: 1 }));
    const handles = await Promise.all(stores.map((store) => store.shared()));
    const [db] = handles;
    assert.ok(db);
    const [migrated] = await rowsOf<{ count: string }>(db, sql`select count(*) from drizzle.__webhook_relay`);
    const migrations = readdirSync(`${rootPath}/migrations/shared`).filter((name) => name.endsWith('.sql'));
    assert.equal(Number(migrated?.count), migrations.length);
    for (const store of stores) await store.close();
  });

  test('postgres: statements are prepared, and read by index from the first row on', async () => {
    const url = await (await server()).newDatabase();
    const store = postgresReadStore({ url, connections: 1 });
    // One row on one page, and the planner knows it: reading the whole table would be cheaper, today.
    const log = memoryLog();
    await appendAll(log, jobAppends(PLAN));
    const db = await project(log, store);
    const models = modelsOver(db);
    await models.job.find('job_none');
    await models.proof.recent(10);
    const prepared = await rowsOf<{ statement: string }>(
      db,
      sql`select statement from pg_prepared_statements`,
    );
    const named = prepared.filter(({ statement }) => /from "(jobs|proofs)"/.test(statement));
    assert.equal(named.length, 2);
    await db.execute(sql.raw('analyze jobs'));
    const plan = await rowsOf<Record<string, string>>(
      db,
      sql.raw(`explain select * from jobs where id = 'x'`),
    );
    assert.match(JSON.stringify(plan), /Index|Bitmap/);
    await store.close();
  });

  test('postgres: a connection that was lost is given up, and the next statements get others', async () => {
    const url = await (await server()).newDatabase();
    const [store, other] = [postgresReadStore({ url }), postgresReadStore({ url })];
    const [before, killer] = [await store.open('any'), await other.shared()];
    const [row] = await rowsOf<{ pid: number }>(before, sql`select pg_backend_pid() as pid`);
    assert.equal(await store.open('any'), before, 'the same handle while nothing is lost');
    await killer.execute(sql`select pg_terminate_backend(${row?.pid})`);
    await until('another connection', async () => {
      const found = await rowsOf<{ pid: number }>(before, sql`select pg_backend_pid() as pid`).catch(
        () => [],
      );
      return found[0] !== undefined && found[0].pid !== row?.pid;
    });
    const answers = Array.from({ length: 20 }, async () =>
      rowsOf(await store.open('any'), sql`select 1 as one`),
    );
    assert.equal((await Promise.all(answers)).length, 20);
    await store.close();
    await other.close();
  });
});
