// The embedded read models damaged while they are open: detected, logged, replaced and replayed, without a restart.
import assert from 'node:assert/strict';
import { mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { sql } from 'drizzle-orm';
import { type ReadModels, readModels } from '#projections/read-models.ts';
import { pgliteReadStore } from '#src/adapters/read-store/pglite.ts';
import { systemClock } from '#src/adapters/runtime/clock.ts';
import type { Logger } from '#src/ports/logger.ts';
import { appendAll, jobAppends, jobIdOf, PLAN, recorded } from '#test/support/job-histories.ts';
import { type MemoryLog, memoryLog } from '#test/support/memory-log.ts';
import { asStored, rowsAfter } from '#test/support/read-model-rows.ts';
import { allRows, project, rowsFor, runnerOver, silent } from '#test/support/read-store.ts';

const PATIENCE_MS = 60_000;
const slow = { timeout: 180_000 };
const place = mkdtempSync(join(tmpdir(), 'relay-pglite-damage-'));
after(() => rmSync(place, { recursive: true, force: true }));

const DAMAGED = 'the embedded read models are damaged: replaying them from the log';

const fresh = () => mkdtempSync(join(place, 'case-'));

/** `log`: what its rows were projected from before, by another process: nothing of them is in memory. */
async function given(renewalPauseMs?: number, log?: MemoryLog) {
  const lines: string[] = [];
  const note = (message: string) => void lines.push(message);
  const logger: Logger = { info: note, warn: note, error: note };
  const directory = fresh();
  if (log !== undefined) {
    const before = pgliteReadStore({ directory, logger: silent });
    await project(log, before);
    await before.close();
  }
  const options = { directory, logger, ...(renewalPauseMs === undefined ? {} : { renewalPauseMs }) };
  return { store: pgliteReadStore(options), directory, lines, logger };
}

/** Every table and index, the catalogue's too, is garbage on the disk; PGlite has some of it in memory. */
function spoilTables(directory: string): void {
  const base = join(directory, 'pglite', 'base');
  for (const entry of readdirSync(base, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile()) continue;
    const path = join(entry.parentPath, entry.name);
    writeFileSync(path, 'x'.repeat(Math.max(8192, statSync(path).size)));
  }
}

async function until(what: string, met: () => boolean | Promise<boolean>): Promise<void> {
  for (const end = Date.now() + PATIENCE_MS; !(await met()); await sleep(10)) {
    if (Date.now() > end) throw new Error(`waited too long for ${what}`);
  }
}

const jobs = (from: number, to: number) =>
  Array.from({ length: to - from }, (_, n) => jobAppends({ ...PLAN, seed: from + n })).flat();
const newest = (models: ReadModels) => models.proof.recent(3);
const fails = (answer: Promise<unknown>) => assert.rejects(answer);

test('pglite: tables spoilt while events come: the rows are replayed and follow again', slow, async () => {
  const log = memoryLog();
  const head = (await appendAll(log, jobs(0, 9))) ?? '';
  const { store, directory, lines, logger } = await given(undefined, log);
  const runner = runnerOver(log, store, { logger });
  const models = readModels(runner, systemClock(), runner.ready);
  assert.ok(await runner.caughtUp(head, PATIENCE_MS));
  assert.deepEqual(await store.health(), { ok: true });
  spoilTables(directory);
  assert.ok(await runner.caughtUp((await appendAll(log, jobs(9, 20))) ?? '', PATIENCE_MS));
  assert.deepEqual(lines, [
    'events cannot be projected into the read models; the runner retries',
    DAMAGED,
    'the read models are projected again',
  ]);
  assert.deepEqual(await store.health(), { ok: true });
  assert.equal((await newest(models)).length, 3);
  assert.deepEqual(await allRows(await rowsFor(log, store)), asStored(await rowsAfter(recorded(log))));
  await runner.stop();
  await store.close();
});

test('pglite: damage that only readers meet is mended too, while no event comes', slow, async () => {
  const log = memoryLog();
  const head = (await appendAll(log, jobs(0, 9))) ?? '';
  const { store, directory, lines, logger } = await given(undefined, log);
  const runner = runnerOver(log, store, { logger });
  const models = readModels(runner, systemClock(), runner.ready);
  assert.ok(await runner.caughtUp(head, PATIENCE_MS));
  spoilTables(directory);
  for (let n = 0; n < 3; n++) await fails(newest(models));
  assert.deepEqual(await store.health(), { ok: false }, 'though it still answers a probe');
  await until('the store to be replaced', () => lines.includes(DAMAGED));
  await until('the rows to be there again', async () => (await runner.ready()) && runner.position() === head);
  await until('the newest', async () => (await newest(models).catch(() => [])).length === 3);
  assert.deepEqual(await store.health(), { ok: true });
  assert.ok(await models.job.find(jobIdOf(8)));
  await runner.stop();
  await store.close();
});

test(
  'pglite: after a panic no query is answered and health reports it, until the store is replaced',
  slow,
  async () => {
    const { store, directory, lines } = await given();
    const first = await store.shared();
    assert.deepEqual(await store.health(), { ok: true });
    rmSync(join(directory, 'pglite', 'pg_wal'), { recursive: true });
    await fails(first.execute(sql`select pg_switch_wal()`));
    assert.deepEqual(await store.health(), { ok: false });
    assert.equal(await store.shared(), first, 'two failures are no proof yet');
    assert.deepEqual(await store.health(), { ok: false });
    const [second, same] = await Promise.all([store.shared(), store.shared()]);
    assert.notEqual(second, first);
    assert.equal(second, same, 'calls at the same time share one attempt');
    assert.deepEqual(await store.health(), { ok: true });
    assert.deepEqual(lines, [DAMAGED]);
    await store.close();
  },
);

test('pglite: a store that is damaged repeatedly is replaced with growing pauses', slow, async () => {
  const { store, directory, lines } = await given(3_600_000);
  for (const renewed of [true, false]) {
    const before = await store.shared();
    rmSync(join(directory, 'pglite', 'pg_wal'), { recursive: true });
    await fails(before.execute(sql`select pg_switch_wal()`));
    for (let n = 0; n < 3; n++) await fails(before.execute(sql`select 1`));
    assert.equal((await store.shared()) !== before, renewed);
    assert.deepEqual(await store.health(), { ok: renewed });
  }
  assert.deepEqual(lines, [DAMAGED]);
  await store.close();
});

test('pglite: a value that does not fit says nothing of the files', slow, async () => {
  const { store, lines } = await given();
  const db = await store.shared();
  for (let n = 0; n < 5; n++) {
    await fails(db.execute(sql`select ${'x'}::int`));
    await fails(db.transaction((tx) => tx.execute(sql`select 1 / ${0}::int`)));
    await fails(
      db.transaction(() => {
        throw new Error('overtaken');
      }),
    );
  }
  assert.equal(await store.shared(), db);
  assert.deepEqual(await store.health(), { ok: true });
  assert.deepEqual(lines, []);
  await store.close();
});

test('pglite: files that failed a statement are not believed at the next start', slow, async () => {
  const { store, directory, logger } = await given();
  const log = memoryLog();
  const runner = runnerOver(log, store);
  assert.ok(await runner.caughtUp((await appendAll(log, jobs(0, 3))) ?? '', PATIENCE_MS));
  await runner.stop();
  const db = await store.shared();
  await fails(db.transaction((tx) => tx.execute(sql`select * from no_such_table`)));
  await store.close();
  const next = pgliteReadStore({ directory, logger });
  assert.deepEqual((await allRows(await rowsFor(log, next))).jobs, []);
  // Gone altogether: closing says so in a line, and frees the lock.
  rmSync(join(directory, 'pglite'), { recursive: true });
  await next.close();
  await pgliteReadStore({ directory, logger }).close();
});
