// One suite for rebuilds over every read store: a rebuild gives the rows that are live, at the position where they
// stand, and nothing else changes.
import assert from 'node:assert/strict';
import { after, describe, test } from 'node:test';
import { sql } from 'drizzle-orm';
import fc from 'fast-check';
import { modelSet, readCheckpoints } from '#projections/checkpoint.ts';
import { eventMark } from '#projections/last-event.ts';
import { purgeOnce } from '#projections/purge.ts';
import { CannotRebuild } from '#projections/rebuild-lock.ts';
import { READ_MODELS } from '#projections/registry.ts';
import { type Db, rowsOf } from '#projections/rows.ts';
import {
  appendAll,
  decisionAppend,
  histories,
  type JobPlan,
  jobAppends,
  jobIdOf,
  PLAN,
  recorded,
} from './job-histories.ts';
import { leafyLog } from './leafy-log.ts';
import { memoryLog } from './memory-log.ts';
import { asStored, rowsAfter } from './read-model-rows.ts';
import { treeRowsOf } from './read-model-tree.contract.ts';
import { allRows } from './read-store.ts';
import { leftovers, project, type RebuildHarness, schemaOf } from './rebuild-world.ts';

const MINUTE = 60_000;

async function logOf(...plans: readonly Partial<JobPlan>[]) {
  const log = memoryLog();
  for (const [seed, plan] of plans.entries()) await appendAll(log, jobAppends({ ...PLAN, seed, ...plan }));
  return log;
}

const stateOf = async (db: Db) => ({
  rows: await allRows(db),
  checkpoints: await rowsOf(db, sql`select * from checkpoints order by id`),
  retention: await rowsOf(db, sql`select * from retention`),
});

const modelsNamed = (...names: readonly string[]) => READ_MODELS.filter(({ name }) => names.includes(name));

export function rebuildContract(harness: RebuildHarness): void {
  describe(`${harness.name}: a rebuild`, { ...harness.needs, timeout: 180_000 }, () => {
    after(() => harness.end());

    test('gives the live rows, of any history and in any batches; then both go on alike', async () => {
      const runs = harness.name === 'pglite' ? 4 : 10;
      await fc.assert(
        fc.asyncProperty(
          histories,
          fc.integer({ min: 1, max: 40 }),
          fc.nat(),
          async (appends, batchSize, cut) => {
            const { store, rebuild } = await harness.fresh();
            const log = memoryLog();
            const half = appends.length === 0 ? 0 : cut % appends.length;
            await appendAll(log, appends.slice(0, half));
            if (half === 0) return;
            const db = await store.open();
            await project(log, store);
            const before = await stateOf(db);
            // The live rows may be behind the log: no service runs, or it is slow.
            await appendAll(log, appends.slice(half));
            const result = await rebuild(log, { batchSize });
            assert.equal(result.outcome, 'swapped');
            assert.deepEqual(await stateOf(db), before);
            assert.deepEqual((await rebuild(log, { check: true, batchSize })).outcome, 'equal');
            assert.deepEqual(await stateOf(db), before);
            await project(log, store);
            assert.deepEqual(await allRows(db), asStored(await rowsAfter(recorded(log))));
            assert.deepEqual(await leftovers(db), []);
          },
        ),
        { numRuns: runs },
      );
    });

    test('tells what it handled, and leaves every name, index and constraint as it was', async () => {
      const { store, rebuild } = await harness.fresh();
      const log = await logOf({ answers: [500, 200], paid: true }, { end: 'running' }, {});
      await appendAll(log, [decisionAppend(1)]);
      const db = await store.open();
      await project(log, store);
      const before = await schemaOf(db);
      const told: number[] = [];
      const result = await rebuild(log, { batchSize: 4, onProgress: ({ events }) => told.push(events) });
      const events = log.events.length;
      assert.deepEqual(
        { ...result, rows: undefined },
        {
          outcome: 'swapped',
          events,
          eventsHere: events,
          position: await log.head(),
          rows: undefined,
          different: [],
          behindHorizon: null,
        },
      );
      const counted = Object.entries(await allRows(db)).map(([table, rows]) => [table, rows.length]);
      assert.deepEqual(result.rows, Object.fromEntries(counted));
      assert.deepEqual(told, [0, 4, 8, events].slice(0, told.length));
      assert.equal(told.at(-1), events);
      assert.deepEqual(await schemaOf(db), before);
      assert.ok(before.length > 20, 'the schema is looked at');
    });

    test('of one model leaves the tables of the others alone', async () => {
      const { store, rebuild } = await harness.fresh();
      const log = await logOf({}, { answers: [404] });
      const db = await store.open();
      await project(log, store);
      const before = await stateOf(db);
      await db.execute(sql`update jobs set status = 'failed'`);
      await db.execute(sql`update proofs set status = 'failed'`);
      const result = await rebuild(log, { models: modelsNamed('job') });
      assert.deepEqual(Object.keys(result.rows), ['jobs']);
      const { rows } = await stateOf(db);
      assert.deepEqual(rows.jobs, before.rows.jobs);
      assert.notDeepEqual(rows.proofs, before.rows.proofs);
    });

    test('mends rows that were edited, lost or invented; --check names them before and changes nothing', async () => {
      const { store, rebuild } = await harness.fresh();
      const log = await logOf({ paid: true }, {}, {});
      const db = await store.open();
      await project(log, store);
      const good = await stateOf(db);
      const [edited, lost, invented] = [jobIdOf(0), jobIdOf(1), 'job_0invented'];
      await db.execute(sql`update jobs set attempts = 7, payment = null where id = ${edited}`);
      await db.execute(sql`delete from jobs where id = ${lost}`);
      await db.execute(sql`insert into jobs select (json_populate_record(j, json_build_object('id', ${invented}::text))).*
        from jobs j where id = ${edited}`);
      await db.execute(sql`update trust_totals set verified = 0`);
      const bad = await stateOf(db);
      const { outcome, different } = await rebuild(log, { check: true });
      assert.equal(outcome, 'different');
      assert.deepEqual(
        different.map(({ table, differing, first }) => [table, differing, [...first]]),
        [
          [
            'jobs',
            3,
            [
              { key: edited, kind: 'differs', columns: ['attempts', 'payment'] },
              { key: lost, kind: 'missing', columns: [] },
              { key: invented, kind: 'surplus', columns: [] },
            ].sort((a, b) => (a.key < b.key ? -1 : 1)),
          ],
          ['trust_totals', 1, [{ key: 'all', kind: 'differs', columns: ['verified'] }]],
        ],
      );
      assert.deepEqual(await stateOf(db), bad);
      await rebuild(log);
      assert.deepEqual(await stateOf(db), good);
      assert.equal((await rebuild(log, { check: true })).outcome, 'equal');
    });

    test('leaves out what was purged; what was told behind the horizon since is purged with it', async () => {
      const { store, rebuild } = await harness.fresh();
      const at = (minute: number) => ({ startedAtMs: PLAN.startedAtMs + minute * MINUTE });
      const log = await logOf(at(0), at(1), at(60), at(61), { ...at(0), end: 'running' });
      await appendAll(log, [decisionAppend(1), decisionAppend(2, PLAN.startedAtMs + 90 * MINUTE)]);
      const db = await store.open();
      await project(log, store);
      const before = new Date(PLAN.startedAtMs + 30 * MINUTE).toISOString();
      await purgeOnce({ db, models: READ_MODELS }, { jobs: before, receipts: before });
      const purged = await stateOf(db);
      assert.deepEqual([purged.rows.jobs?.length, purged.rows.decisions?.length], [3, 1]);
      const all = await rebuild(log, { check: true });
      assert.deepEqual([all.outcome, all.behindHorizon], ['equal', null]);
      await rebuild(log, { batchSize: 3 });
      assert.deepEqual(await stateOf(db), purged);

      await appendAll(log, jobAppends({ ...PLAN, seed: 9, ...at(2) }));
      await project(log, store);
      assert.equal((await allRows(db)).jobs?.length, 4);
      const { outcome, behindHorizon } = await rebuild(log, { check: true });
      assert.equal(outcome, 'equal');
      // A job, its proof and its receipt.
      assert.deepEqual(behindHorizon, { jobsBefore: before, receiptsBefore: before, rows: 3 });
      await rebuild(log);
      const { rows, retention } = await stateOf(db);
      assert.equal(rows.jobs?.length, 3);
      const [{ jobs_purged, receipts_purged }] = retention as [Record<string, unknown>];
      assert.deepEqual([Number(jobs_purged), Number(receipts_purged)], [3, 3]);
    });

    test('without any live rows it tells all of the log and writes the checkpoint; a runner goes on there', async () => {
      const { store, rebuild } = await harness.fresh();
      const log = await logOf({}, {});
      await assert.rejects(rebuild(log, { check: true }), CannotRebuild);
      await rebuild(log, { models: modelsNamed('job', 'trust') });
      const db = await store.open();
      const head = (await log.head()) ?? '';
      assert.deepEqual([...(await readCheckpoints(db)).told].sort(), [
        ['job', head],
        ['trust', head],
      ]);
      await appendAll(log, jobAppends({ ...PLAN, seed: 5 }));
      await project(log, store);
      assert.deepEqual(await allRows(db), asStored(await rowsAfter(recorded(log))));
    });

    test('models that stand at different positions are rebuilt each as far as it stands', async () => {
      const { store, rebuild } = await harness.fresh();
      const log = await logOf({});
      await project(log, store);
      await appendAll(log, [decisionAppend(3), ...jobAppends({ ...PLAN, seed: 3, decision: 3 })]);
      await project(log, store, { models: modelsNamed('job', 'monitoring', 'proof', 'receipt', 'trust') });
      const db = await store.open();
      const before = await stateOf(db);
      assert.deepEqual([before.rows.jobs?.length, before.rows.decisions?.length], [2, 0]);
      await rebuild(log);
      assert.deepEqual(await stateOf(db), before);
      await project(log, store);
      assert.deepEqual(await allRows(db), asStored(await rowsAfter(recorded(log))));
    });

    test('gives the tree, its tiles and the places in it byte for byte, and mends what is wrong in them', async () => {
      const { store, rebuild } = await harness.fresh();
      const { log, grow, rows } = leafyLog();
      const db = await store.open();
      await grow(420);
      await project(log, store, { batchSize: 90 });
      const good = await stateOf(db);
      assert.deepEqual(await treeRowsOf(db), rows());
      await db.execute(sql`update transparency_tiles set hashes = reverse(hashes) where id = '0/0/3'`);
      await db.execute(sql`delete from transparency_tiles where id = 'entries/0/15'`);
      await db.execute(sql`update transparency_tree set size = size + 1`);
      const { outcome, different } = await rebuild(log, { check: true, batchSize: 70 });
      assert.equal(outcome, 'different');
      assert.deepEqual(
        different.map(({ table, first }) => [table, ...first.map(({ key, kind }) => `${kind} ${key}`)]),
        [
          ['transparency_tree', 'differs all'],
          ['transparency_tiles', 'differs 0/0/3', 'missing entries/0/15'],
        ],
      );
      await rebuild(log, { models: modelsNamed('transparency'), batchSize: 110 });
      assert.deepEqual(await stateOf(db), good);
      await grow(60);
      await project(log, store);
      assert.deepEqual(await treeRowsOf(db), rows());
      assert.equal((await rebuild(log, { check: true })).outcome, 'equal');
    });

    for (const [which, names] of [
      ['behind', ['job', 'receipt']],
      ['ahead of', ['transparency']],
    ] as const) {
      test(`a tree that stands ${which} other rows is rebuilt as far as it stands, and grows on from there`, async () => {
        const { store, rebuild } = await harness.fresh();
        const { log, grow, rows } = leafyLog();
        const db = await store.open();
        await grow(40);
        await project(log, store);
        await grow(45);
        await project(log, store, { models: modelsNamed(...names) });
        const before = await stateOf(db);
        await grow(5);
        for (const batchSize of [9, 200]) {
          await rebuild(log, { batchSize });
          assert.deepEqual(await stateOf(db), before);
        }
        await project(log, store, { batchSize: 7 });
        assert.deepEqual(await treeRowsOf(db), rows());
      });
    }

    test('rows of another log are refused unless that is said, and replaced by a rebuild of all models only', async () => {
      const { store, rebuild } = await harness.fresh();
      await project(await logOf({}, {}, {}), store);
      const db = await store.open();
      const before = await stateOf(db);
      const other = await logOf({ answers: [404] });
      assert.ok(((await other.head()) ?? '') < String(before.checkpoints[0]?.position), 'a shorter one');
      const refused = (message: string) => ({
        message: `the live rows are of another event log: ${message}`,
      });
      const unsaid = refused('check EVENTSTORE_URL, DATA_DIR and DATABASE_URL, or say --other-log');
      const models = modelsNamed('job');
      for (const options of [{}, { check: true }, { models }])
        await assert.rejects(rebuild(other, options), unsaid);
      for (const options of [{ check: true }, { models }])
        await assert.rejects(rebuild(other, { ...options, otherLog: true }), refused('rebuild all models'));
      assert.deepEqual(await stateOf(db), before);
      await rebuild(other, { otherLog: true });
      const { rows, checkpoints } = await stateOf(db);
      assert.deepEqual(rows, asStored(await rowsAfter(recorded(other))));
      const [first] = other.events;
      assert.deepEqual(
        checkpoints.map(({ position, origin }) => [position, origin]),
        [[await other.head(), first?.id]],
      );
    });

    test('rows of another log take the horizon of their purge with them', async () => {
      const { store, rebuild } = await harness.fresh();
      await project(await logOf({}, {}), store);
      const db = await store.open();
      const future = new Date(PLAN.startedAtMs + 1e9).toISOString();
      await purgeOnce({ db, models: READ_MODELS }, { jobs: future, receipts: future });
      assert.equal((await allRows(db)).jobs?.length, 0);
      const other = await logOf({ answers: [404] }, {}, {});
      await rebuild(other, { otherLog: true });
      const { rows, retention } = await stateOf(db);
      assert.deepEqual(rows, asStored(await rowsAfter(recorded(other))));
      // Nothing is subtracted from what the totals say is in store.
      assert.equal(retention.length, 0);
      assert.equal((await rebuild(other, { check: true })).outcome, 'equal');
    });

    for (const [where, jobs] of [
      ['ahead of', 1],
      ['overtaken by', 9],
    ] as const)
      test(`rows ${where} a log restored from an older backup are replaced as those of another one`, async () => {
        const { store, rebuild } = await harness.fresh();
        const log = await logOf({}, {}, {}, {});
        await project(log, store);
        const db = await store.open();
        const before = await stateOf(db);
        const restored = memoryLog();
        for (const { stream, id, type, data, metadata } of log.events.slice(0, log.events.length / 2))
          await restored.append(stream, 'any', [{ id, type, data, metadata }]);
        for (let seed = 50; seed < 50 + jobs; seed++)
          await appendAll(restored, jobAppends({ ...PLAN, seed }));
        assert.equal(((await restored.head()) ?? '') > ((await log.head()) ?? ''), jobs === 9);
        const isAhead = (error: Error) =>
          error instanceof CannotRebuild && /what the event log does not have/.test(error.message);
        await assert.rejects(rebuild(restored, { check: true }), isAhead);
        await assert.rejects(rebuild(restored, { models: modelsNamed('job') }), isAhead);
        assert.deepEqual(await stateOf(db), before);
        const { position } = await rebuild(restored);
        assert.equal(position, await restored.head());
        const { rows, checkpoints } = await stateOf(db);
        assert.deepEqual(rows, asStored(await rowsAfter(recorded(restored))));
        assert.deepEqual(
          checkpoints.map(({ id, position: at, event }) => [id, at, event]),
          [[modelSet(READ_MODELS), position, eventMark(restored.events.at(-1) ?? assert.fail())]],
        );
        assert.equal((await rebuild(restored, { check: true })).outcome, 'equal');
      });

    test('an empty log is nothing to rebuild from', async () => {
      const { rebuild } = await harness.fresh();
      await assert.rejects(rebuild(memoryLog()), CannotRebuild);
    });
  });
}
