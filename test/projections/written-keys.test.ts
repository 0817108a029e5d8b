// What a rebuild does not look for in the database: the same rows as with looking, and no key forgotten.
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { sql } from 'drizzle-orm';
import { judgeEvents, Projector, readHead } from '#projections/projection.ts';
import { READ_MODELS } from '#projections/registry.ts';
import { type Db, rowsOf } from '#projections/rows.ts';
import { writtenKeys } from '#projections/written-keys.ts';
import {
  appendAll,
  decisionAppend,
  jobAppends,
  judgeBySignature,
  PLAN,
  recorded,
} from '#test/support/job-histories.ts';
import { memoryLog } from '#test/support/memory-log.ts';
import { asStored, rowsAfter } from '#test/support/read-model-rows.ts';
import { allRows, pgliteHarness, rowsFor } from '#test/support/read-store.ts';

const slow = { timeout: 120_000 };
const harness = pgliteHarness();
after(() => harness.end());

test('written keys: none is forgotten, however full; few others are taken for one, and none of another table', () => {
  const keys = Array.from({ length: 2000 }, (_, n) => `job_${n.toString(36).padStart(26, '0')}`);
  const roomy = writtenKeys(2 ** 20);
  const full = writtenKeys(2 ** 5);
  for (const key of keys) {
    roomy.add('jobs', key);
    full.add('jobs', key);
  }
  assert.ok(keys.every((key) => roomy.mayHave('jobs', key) && full.mayHave('jobs', key)));
  const others = [...keys.map((key) => `${key}x`), ...keys.map((key) => key.replace('job', 'dec'))];
  assert.ok(others.filter((key) => roomy.mayHave('jobs', key)).length < 5);
  assert.ok(keys.filter((key) => roomy.mayHave('proofs', key)).length < 5);
});

/** The events interleaved: of every job, first all its first appends. */
async function interleavedLog(jobs: number) {
  const log = memoryLog();
  const histories = Array.from({ length: jobs }, (_, seed) => [
    decisionAppend(seed),
    // Every id twice: the second start of a job must find the first one's row.
    ...jobAppends({ ...PLAN, seed: seed % 5, decision: seed, paid: seed % 2 === 0, answers: [500, 200] }),
  ]);
  for (let at = 0; histories.some((history) => at < history.length); at++)
    await appendAll(
      log,
      histories.flatMap((history) => history.slice(at, at + 1)),
    );
  return log;
}

/** How many queries for rows there were. */
async function projectedAlone(db: Db, log: Awaited<ReturnType<typeof interleavedLog>>, alone: boolean) {
  let loads = 0;
  const counting = new Proxy(db, {
    get(target, name) {
      if (name !== 'execute') return Reflect.get(target, name, target);
      return (...given: Parameters<Db['execute']>) => {
        if (JSON.stringify(given[0]).includes('load_rows')) loads++;
        return target.execute(...given);
      };
    },
  });
  // Nothing stays in memory from one batch to the next but its own rows.
  const projector = new Projector(await readHead(db), { models: READ_MODELS, cachedRows: 0, alone });
  const events = recorded(log);
  for (let from = 0; from < events.length; from += 3) {
    const batch = events.slice(from, from + 3);
    const last = batch.at(-1);
    assert.ok(last !== undefined);
    assert.equal(await projector.project(counting, await judgeEvents(batch, judgeBySignature), last), true);
  }
  return loads;
}

test('written keys: a projector that is alone makes the same rows with fewer queries', slow, async () => {
  const log = await interleavedLog(10);
  const loads: number[] = [];
  for (const alone of [false, true]) {
    const db = await rowsFor(log, await harness.fresh());
    loads.push(await projectedAlone(db, log, alone));
    assert.deepEqual(await allRows(db), asStored(await rowsAfter(log.events)));
  }
  const [asking = 0, alone = 0] = loads;
  assert.ok(alone > 0 && alone < asking, `${alone} of ${asking}`);
});

test('written keys: over rows of an earlier process every key is looked for', slow, async () => {
  const log = await interleavedLog(6);
  const db = await rowsFor(log, await harness.fresh());
  const events = recorded(log);
  const cut = 13;
  for (const batch of [events.slice(0, cut), events.slice(cut)]) {
    const last = batch.at(-1);
    assert.ok(last !== undefined);
    const projector = new Projector(await readHead(db), { models: READ_MODELS, alone: true });
    await projector.project(db, await judgeEvents(batch, judgeBySignature), last);
  }
  assert.deepEqual(await allRows(db), asStored(await rowsAfter(log.events)));
  const [row] = await rowsOf<{ version: number }>(db, sql`select version::int as version from projection`);
  assert.equal(row?.version, 2);
});
