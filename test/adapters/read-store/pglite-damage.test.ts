// The embedded read models damaged while they are open: reported, so that the process ends, and replayed at the next start.
import assert from 'node:assert/strict';
import { mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { sql } from 'drizzle-orm';
import { countFailures, pgliteReadStore } from '#src/adapters/read-store/pglite.ts';
import { systemClock } from '#src/adapters/runtime/clock.ts';
import { appendAll, jobAppends, PLAN } from '#test/support/given/job-histories.ts';
import { memoryLog } from '#test/support/log/memory-log.ts';
import {
  allRows,
  project,
  reached,
  rowsFor,
  runnerOver,
  servedBy,
  silent,
} from '#test/support/log/read-store.ts';
import { testFolder } from '#test/support/process/test-folder.ts';

const slow = { timeout: 300_000 };
const place = testFolder('pglite-damage');

function given(directory = mkdtempSync(join(place, 'case-'))) {
  const damages: unknown[] = [];
  const onDamage = (cause: unknown) => void damages.push(cause);
  return { store: pgliteReadStore({ directory, logger: silent, onDamage }), directory, damages };
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

const jobs = (from: number, to: number) =>
  Array.from({ length: to - from }, (_, n) => jobAppends({ ...PLAN, seed: from + n })).flat();
const fails = (answer: Promise<unknown>) => assert.rejects(answer);

for (const who of ['the projector', 'readers'] as const) {
  test(
    `pglite: damage found by ${who} is reported once, and the next start replays the rows`,
    slow,
    async () => {
      const log = memoryLog();
      const head = (await appendAll(log, jobs(0, 9))) ?? '';
      const before = given();
      await project(log, before.store);
      await before.store.close();
      const { store, directory, damages } = given(before.directory);
      const runner = runnerOver(log, store);
      const models = servedBy(runner);
      await reached(runner, head);
      assert.deepEqual(await store.health(), { ok: true });
      spoilTables(directory);
      if (who === 'the projector') await appendAll(log, jobs(9, 12));
      else for (let n = 0; n < 4; n++) await fails(models.proof.recent(3));
      while (damages.length === 0) await systemClock().sleep(10);
      assert.deepEqual(await store.health(), { ok: false }, 'though it still answers a probe');
      await runner.stop();
      await store.close();
      assert.equal(damages.length, 1);
      const next = given(directory);
      assert.deepEqual((await allRows(await rowsFor(log, next.store))).jobs, []);
      await next.store.close();
    },
  );
}

test('pglite: a value that does not fit says nothing of the files', slow, async () => {
  const { store, damages } = given();
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
  assert.deepEqual(await store.health(), { ok: true });
  assert.deepEqual(damages, []);
  await store.close();
});

test('pglite: three statements that fail by our own mistake end no process', slow, async () => {
  const { store, damages } = given();
  const db = await store.shared();
  for (let n = 0; n < 4; n++) {
    await fails(db.execute(sql`select no_such_column from pg_class`));
    await fails(db.execute(sql`select * from no_such_table`));
  }
  assert.deepEqual(damages, []);
  assert.deepEqual(await store.health(), { ok: true });
  await store.close();
});

test('pglite: damage is proved by three failures within a minute, not by three in the life of a process', () => {
  let [ms, proofs] = [0, 0];
  const failures = countFailures(
    () => proofs++,
    () => ms,
  );
  const failAt = (at: number) => {
    ms = at;
    failures.add(Object.assign(new Error('of the database'), { code: 'XX001' }));
  };
  for (const hour of [0, 1, 2, 3]) failAt(hour * 3_600_000);
  assert.deepEqual([proofs, failures.proveDamage(), failures.areSuspect()], [0, false, true]);
  for (const s of [1, 2, 3]) failAt(10 * 3_600_000 + s * 1000);
  assert.deepEqual([proofs, failures.proveDamage()], [1, true]);
});

test('pglite: files that failed a statement are not believed at the next start', slow, async () => {
  const { store, directory } = given();
  const log = memoryLog();
  const runner = runnerOver(log, store);
  await reached(runner, await appendAll(log, jobs(0, 3)));
  await runner.stop();
  const db = await store.shared();
  await fails(db.transaction((tx) => tx.execute(sql`select * from no_such_table`)));
  await store.close();
  const next = given(directory).store;
  assert.deepEqual((await allRows(await rowsFor(log, next))).jobs, []);
  // Gone altogether: closing says so in a line, and frees the lock.
  rmSync(join(directory, 'pglite'), { recursive: true });
  await next.close();
  await given(directory).store.close();
});
