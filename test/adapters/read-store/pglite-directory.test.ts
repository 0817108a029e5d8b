// Whose the embedded read models are, and that whatever happened to their files, the rows are those of a replay.
import assert from 'node:assert/strict';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';
import { test } from 'node:test';
import type { Db } from '#projections/rows.ts';
import { sqliteEventLog } from '#src/adapters/event-log/sqlite/event-log.ts';
import { pgliteReadStore } from '#src/adapters/read-store/pglite.ts';
import { takePgliteDirectory } from '#src/adapters/read-store/pglite-directory.ts';
import type { EventLog } from '#src/ports/event-log.ts';
import type { Logger } from '#src/ports/logger.ts';
import { type ReadStore, ReadStoreInUse } from '#src/ports/read-store.ts';
import { appendAll, jobAppends, PLAN } from '#test/support/given/job-histories.ts';
import { LONG } from '#test/support/given/property-runs.ts';
import { startProgram } from '#test/support/log/event-log-process.ts';
import { asStored, rowsAfter } from '#test/support/log/read-model-rows.ts';
import { allRows, reached, rowsFor, runnerOver, silent } from '#test/support/log/read-store.ts';
import { testFolder } from '#test/support/process/test-folder.ts';

const slow = { timeout: 300_000 };
const place = testFolder('pglite-directory');
const fresh = () => mkdtempSync(join(place, 'case-'));
const projector = new URL('../../support/log/read-model-process.ts', import.meta.url).href;

async function filledLog(file: string, jobs: number): Promise<EventLog> {
  const log = await sqliteEventLog({ file });
  const plans = Array.from({ length: jobs }, (_, seed) => jobAppends({ ...PLAN, seed, answers: [500, 200] }));
  await Promise.all(plans.map((appends) => appendAll(log, appends)));
  return log;
}

async function assertReplayed(log: EventLog, store: ReadStore<Db>): Promise<void> {
  const runner = runnerOver(log, store);
  await reached(runner, await log.head());
  await runner.stop();
  const events = await log.readAll({ after: null, max: 1_000_000 });
  assert.deepEqual(await allRows(await rowsFor(log, store)), asStored(await rowsAfter(events)));
}

test(
  'pglite: a second process is refused with the pid of the first; a dead process blocks no one',
  slow,
  async () => {
    const directory = fresh();
    const file = join(directory, 'log.sqlite');
    const log = await filledLog(file, 1);
    const first = startProgram(projector, [file, directory]);
    await first.printed(1, 'open');
    assert.throws(
      () => pgliteReadStore({ directory, logger: silent }),
      (error) => error instanceof ReadStoreInUse && error.pid === first.child.pid,
    );
    first.child.kill('SIGKILL');
    await first.ended;
    const second = pgliteReadStore({ directory, logger: silent });
    await second.close();
    await log.close();
  },
);

test('pglite: the process itself cannot open the directory twice', slow, async () => {
  const directory = fresh();
  const first = pgliteReadStore({ directory, logger: silent });
  assert.throws(
    () => pgliteReadStore({ directory, logger: silent }),
    (error) => error instanceof ReadStoreInUse && error.pid === process.pid,
  );
  await first.close();
  await pgliteReadStore({ directory, logger: silent }).close();
});

test('pglite: health waits for an opening in progress; before and after it is not ok', slow, async () => {
  const store = pgliteReadStore({ directory: fresh(), logger: silent, healthMs: 60_000 });
  assert.deepEqual(await store.health(), { ok: false });
  const opening = store.shared();
  assert.deepEqual(await store.health(), { ok: true });
  await opening;
  await store.close();
  assert.deepEqual(await store.health(), { ok: false });
});

test(
  'pglite: killed in the middle of projecting, at any point, the rows are those of a fresh replay',
  slow,
  async () => {
    const directory = fresh();
    const file = join(directory, 'log.sqlite');
    const log = await filledLog(file, 120);
    for (const batches of LONG ? [1, 7, 20] : [7]) {
      const killed = startProgram(projector, [file, directory]);
      await killed.printed(batches, 'at ');
      killed.child.kill('SIGKILL');
      await killed.ended;
    }
    const store = pgliteReadStore({ directory, logger: silent });
    await assertReplayed(log, store);
    await store.close();
    await log.close();
  },
);

test('pglite: closed in order the rows are kept; damaged they are replayed', slow, async () => {
  const directory = fresh();
  const log = await filledLog(join(directory, 'log.sqlite'), 20);
  const first = pgliteReadStore({ directory, logger: silent });
  await assertReplayed(log, first);
  const before = await allRows(await rowsFor(log, first));
  await first.close();

  const kept = pgliteReadStore({ directory, logger: silent });
  assert.deepEqual(await allRows(await rowsFor(log, kept)), before, 'nothing was replayed yet');
  await kept.close();

  const control = join(directory, 'pglite', 'global', 'pg_control');
  assert.ok(existsSync(control));
  writeFileSync(control, 'not a control file');
  const warnings: string[] = [];
  const logger: Logger = { ...silent, warn: (message) => void warnings.push(message) };
  const damaged = pgliteReadStore({ directory, logger });
  assert.deepEqual((await allRows(await rowsFor(log, damaged))).jobs, []);
  assert.equal(warnings.length, 1);
  await assertReplayed(log, damaged);
  await damaged.close();
  await log.close();
});

test('pglite: only files closed in order and of this very schema are believed', () => {
  const directory = mkdtempSync(join(place, 'case-'));
  const intact = (schema: string) => {
    const taken = takePgliteDirectory(directory, schema);
    const believed = taken.intact();
    taken.release();
    return believed;
  };
  assert.equal(intact('one'), false, 'there is nothing yet');
  const taken = takePgliteDirectory(directory, 'one');
  mkdirSync(taken.files);
  taken.markOpen();
  taken.markIntact();
  taken.release();
  assert.equal(intact('one'), true);
  assert.equal(intact('two'), false, 'another schema');
  const marker = join(directory, 'lock.sqlite');
  const kept = readFileSync(marker);
  writeFileSync(marker, 'not a database, and longer than the header of one is: '.repeat(9));
  assert.equal(intact('one'), false, 'no marker');
  writeFileSync(marker, kept);
  assert.equal(intact('one'), true);
  const open = takePgliteDirectory(directory, 'one');
  open.markOpen();
  open.release();
  assert.equal(intact('one'), false, 'never closed in order');
});
