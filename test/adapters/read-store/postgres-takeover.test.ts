// One projects at a time, and whoever dies or freezes is followed by another: over a real Postgres, by real processes.
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';
import { after, test } from 'node:test';
import { sql } from 'drizzle-orm';
import { modelSet, readCheckpoint, tryProjectorLock } from '#projections/checkpoint.ts';
import { purgeOnce } from '#projections/purge.ts';
import { READ_MODELS } from '#projections/registry.ts';
import { type Db, rowsOf } from '#projections/rows.ts';
import { sqliteEventLog } from '#src/adapters/event-log/sqlite/event-log.ts';
import { postgresReadStore } from '#src/adapters/read-store/postgres.ts';
import type { EventLog } from '#src/ports/event-log.ts';
import { type Program, startProgram } from '#test/support/event-log-process.ts';
import { appendAll, jobAppends, jobIdOf, PLAN } from '#test/support/job-histories.ts';
import { memoryLog } from '#test/support/memory-log.ts';
import { needsPostgres, type PostgresServer, postgresServer } from '#test/support/postgres.ts';
import { asStored, rowsAfter } from '#test/support/read-model-rows.ts';
import { projectWith } from '#test/support/read-model-versions.contract.ts';
import { allRows, runnerOver } from '#test/support/read-store.ts';
import { waitFor } from '#test/support/service.ts';

const SET = modelSet(READ_MODELS);
const needs = { ...needsPostgres(), timeout: 120_000 };
const plainScript = new URL('../../support/read-model-process.ts', import.meta.url).href;
const halfDeadScript = new URL('../../support/half-dead-projector.ts', import.meta.url).href;
let shared: Promise<PostgresServer> | null = null;
const server = () => {
  shared ??= postgresServer();
  return shared;
};
after(async () => (await shared)?.remove());

type Scene = {
  readonly url: string;
  readonly file: string;
  readonly log: EventLog;
  readonly db: Db;
  start(script: string, ...args: readonly string[]): Program;
  /** Appends jobs and waits until their rows stand. */
  projected(seed: number, jobs: number): Promise<void>;
  /** Every row is what the log says, by nobody else's hand. */
  assertRows(): Promise<void>;
};

async function scene(work: (it: Scene) => Promise<void>): Promise<void> {
  const url = await (await server()).newDatabase();
  const directory = mkdtempSync(join(tmpdir(), 'relay-takeover-'));
  const file = join(directory, 'log.sqlite');
  const log = await sqliteEventLog({ file });
  const store = postgresReadStore({ url, connections: 2 });
  const programs: Program[] = [];
  try {
    const db = await store.open();
    await work({
      url,
      file,
      log,
      db,
      start(script, ...args) {
        const program = startProgram(script, [file, url, ...args]);
        programs.push(program);
        return program;
      },
      async projected(seed, jobs) {
        for (let n = 0; n < jobs; n++) await appendAll(log, jobAppends({ ...PLAN, seed: seed + n }));
        const head = await log.head();
        await waitFor('the rows', async () => (await readCheckpoint(db, SET))?.position === head);
      },
      async assertRows() {
        const events = await log.readAll({ after: null, max: 1_000_000 });
        assert.deepEqual(await allRows(db), asStored(await rowsAfter(events)));
      },
    });
  } finally {
    for (const { child, ended } of programs) {
      // Not child.kill: a frozen process needs no leave to die.
      if (child.exitCode === null && child.signalCode === null) process.kill(child.pid ?? 0, 'SIGKILL');
      await ended;
    }
    await log.close();
    await store.close();
    rmSync(directory, { recursive: true, force: true });
  }
}

test(
  'postgres: of three processes each that projects may be killed, and the next one takes over',
  needs,
  () =>
    scene(async ({ start, projected, assertRows }) => {
      const programs = [1, 2, 3].map(() => start(plainScript));
      await Promise.all(programs.map((program) => program.printed(1, 'open')));
      for (const [turn, program] of programs.slice(0, 2).entries()) {
        await projected(turn * 100, 10);
        process.kill(program.child.pid ?? 0, 'SIGKILL');
        await program.ended;
      }
      await projected(200, 10);
      await assertRows();
    }),
);

test(
  'postgres: a process frozen in the middle of a batch loses the lock; woken again it writes nothing of that batch',
  needs,
  () =>
    scene(async ({ start, db, log, projected, assertRows }) => {
      const poisoned = jobAppends({ ...PLAN, seed: 500 });
      const halfDead = start(halfDeadScript, jobIdOf(500));
      await appendAll(log, poisoned);
      await halfDead.printed(1, 'frozen');
      const begun = performance.now();
      const held = await db.transaction((tx) => tryProjectorLock(tx));
      assert.equal(held, false, 'it holds the lock');
      assert.equal(await readCheckpoint(db, SET), null);
      const living = start(plainScript);
      await living.printed(1, 'open');
      await projected(501, 5);
      console.log(`taken over from a frozen process after ${Math.round(performance.now() - begun)} ms`);
      await assertRows();

      process.kill(halfDead.child.pid ?? 0, 'SIGCONT');
      await halfDead.printed(1, 'awake');
      // It is of this world again, behind the living one, before anything more is projected.
      const position = (await readCheckpoint(db, SET))?.position;
      await halfDead.printed(1, `at ${position}`);
      await assertRows();
      const [{ open } = { open: null }] = await rowsOf<{ open: string }>(
        db,
        sql`select count(*) as open from pg_stat_activity
          where datname = current_database() and state like 'idle in transaction%'`,
      );
      assert.equal(Number(open), 0, 'no transaction of it is left');
    }),
);

test(
  'postgres: nobody purges under the lock of another, and nobody projects while one purges',
  needs,
  async () => {
    const url = await (await server()).newDatabase();
    const store = postgresReadStore({ url, connections: 3 });
    const db = await store.open();
    const log = memoryLog();
    await appendAll(log, jobAppends(PLAN));
    await projectWith(READ_MODELS, log, store);
    const before = { jobs: '2027', receipts: '2027' };
    const held = await db.transaction(async (other) => {
      assert.equal(await tryProjectorLock(other), true);
      return purgeOnce({ db, models: READ_MODELS }, before);
    });
    assert.deepEqual(held, { gone: 0, more: false });
    const runner = runnerOver(log, store);
    const head = (await log.head()) ?? '';
    await waitFor('the runner', () => runner.position() === head);
    const last = await db.transaction(async (other) => {
      assert.equal(await tryProjectorLock(other), true);
      const appended = await appendAll(log, jobAppends({ ...PLAN, seed: 2 }));
      assert.equal(await runner.caughtUp(appended ?? '', 300), false);
      return appended;
    });
    assert.ok(await runner.caughtUp(last ?? '', 20_000));
    await runner.stop();
    assert.deepEqual(await purgeOnce({ db, models: READ_MODELS }, before), { gone: 6, more: false });
    await store.close();
  },
);
