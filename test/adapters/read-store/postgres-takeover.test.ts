// One process projects at a time; if it dies or freezes, another takes over. Real Postgres, real processes.
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';
import { after, describe, test } from 'node:test';
import { readHead } from '#projections/projection.ts';
import type { Db } from '#projections/rows.ts';
import { sqliteEventLog } from '#src/adapters/event-log/sqlite/event-log.ts';
import { postgresReadStore } from '#src/adapters/read-store/postgres.ts';
import type { EventLog } from '#src/ports/event-log.ts';
import { appendAll, jobAppends, jobIdOf, newEvent, PLAN } from '#test/support/given/job-histories.ts';
import { type Program, startProgram } from '#test/support/log/event-log-process.ts';
import { needsPostgres, type PostgresServer, postgresServer } from '#test/support/log/postgres.ts';
import { asStored, rowsAfter } from '#test/support/log/read-model-rows.ts';
import { allRows, rowsFor } from '#test/support/log/read-store.ts';
import { waitFor } from '#test/support/process/service.ts';

const needs = needsPostgres();
const plainScript = new URL('../../support/log/read-model-process.ts', import.meta.url).href;
const halfDeadScript = new URL('./half-dead-projector.ts', import.meta.url).href;
let shared: Promise<PostgresServer> | null = null;
const server = () => {
  shared ??= postgresServer();
  return shared;
};
describe('a projector that dies or freezes', needs, () => {
  after(async () => (await shared)?.remove());

  type Scene = {
    readonly url: string;
    readonly file: string;
    readonly log: EventLog;
    readonly db: Db;
    start(script: string, ...args: readonly string[]): Program;
    /** Appends jobs and waits until their rows stand. */
    projected(seed: number, jobs: number): Promise<void>;
    /** Every row matches the log; no other process wrote to the rows. */
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
      await log.append('job-other', 'no_stream', [newEvent({ type: 'SomethingElse', data: {} })]);
      const db = await rowsFor(log, store);
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
          await waitFor('the rows', async () => (await readHead(db)).position === head);
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

  test('postgres: of three processes each that projects may be killed, and the next one takes over', () =>
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
    }));

  test('postgres: a process frozen in the middle of a batch delays no other process; after it resumes it writes nothing of that batch', () =>
    scene(async ({ start, db, log, projected, assertRows }) => {
      const poisoned = jobAppends({ ...PLAN, seed: 500 });
      const halfDead = start(halfDeadScript, jobIdOf(500));
      await appendAll(log, poisoned);
      await halfDead.printed(1, 'frozen');
      const before = (await readHead(db)).position;
      const living = start(plainScript);
      await living.printed(1, 'open');
      await projected(501, 5);
      assert.notEqual((await readHead(db)).position, before);
      await assertRows();

      process.kill(halfDead.child.pid ?? 0, 'SIGCONT');
      await halfDead.printed(1, 'awake');
      // It follows the living one before anything more is projected.
      await halfDead.printed(1, `at ${(await readHead(db)).position}`);
      await assertRows();
    }));
});
