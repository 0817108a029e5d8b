// `relay rebuild` over every read store: a generation built beside the current one, compared or flipped to.
import assert from 'node:assert/strict';
import { after, describe, test } from 'node:test';
import { type SQL, StringChunk, sql } from 'drizzle-orm';
import { retire } from '#projections/generations.ts';
import { purgeOnce } from '#projections/purge.ts';
import { storeQueries } from '#projections/read-models.ts';
import { CannotRebuild, prune, type RebuildOptions, rebuild } from '#projections/rebuild.ts';
import { READ_MODELS } from '#projections/registry.ts';
import { type Db, rowsOf } from '#projections/rows.ts';
import { postgresReadStore } from '#src/adapters/read-store/postgres.ts';
import { systemClock } from '#src/adapters/runtime/clock.ts';
import { EventDamaged, type EventLog, EventLogUnavailable } from '#src/ports/event-log.ts';
import type { ReadStore } from '#src/ports/read-store.ts';
import { keyRetired } from '#test/support/given/given-events.ts';
import {
  appendAll,
  decisionAppend,
  jobAppends,
  jobIdOf,
  judgeBySignature,
  PLAN,
  RECEIPT_KEY_ID,
} from '#test/support/given/job-histories.ts';
import { LONG } from '#test/support/given/property-runs.ts';
import { memoryLog } from '#test/support/log/memory-log.ts';
import { needsPostgres } from '#test/support/log/postgres.ts';
import {
  allRows,
  assertFolded,
  folded,
  pgliteHarness,
  postgresHarness,
  project,
  type ReadStoreHarness,
  reached,
  rowsFor,
  runnerOver,
  schemaOf,
  silent,
} from '#test/support/log/read-store.ts';
import { waitFor } from '#test/support/process/service.ts';

/** Another process's handle on a store; an embedded one has no second. */
async function rebuildStoreOf(store: ReadStore<Db>): Promise<ReadStore<Db>> {
  if (store.disposable) return { ...store, close: async () => undefined };
  const [row] = await rowsOf<{ name: string; port: string; user: string }>(
    await store.shared(),
    sql`select current_database() as name, current_setting('port') as port, current_user as "user"`,
  );
  return postgresReadStore({ url: `postgres://${row?.user}@127.0.0.1:${row?.port}/${row?.name}` });
}

async function rebuilt(log: EventLog, store: ReadStore<Db>, options: RebuildOptions = {}) {
  const beside = await rebuildStoreOf(store);
  try {
    const deps = { log, store: beside, judgeReceipt: judgeBySignature, clock: systemClock(), logger: silent };
    return await rebuild(deps, options);
  } finally {
    await beside.close();
  }
}

async function logOf(jobs: number) {
  const log = memoryLog();
  for (let seed = 0; seed < jobs; seed++)
    await appendAll(log, [
      decisionAppend(seed),
      ...jobAppends({
        ...PLAN,
        seed,
        decision: seed,
        paid: seed % 2 === 0,
        answers: [500, seed % 3 ? 200 : 404],
      }),
    ]);
  const compromisedAt = new Date(PLAN.startedAtMs).toISOString();
  const events = [keyRetired({ keyId: RECEIPT_KEY_ID, reason: 'compromised', compromisedAt })];
  await appendAll(log, [{ stream: 'keys-relay', events }]);
  return log;
}

const schemas = async (store: ReadStore<Db>) =>
  rowsOf<{ schema: string; state: string }>(
    await store.shared(),
    sql`select "schema", "state" from read_model_generations order by 1`,
  );

/** The handle, whose transactions call `hold` before each statement that contains `text`. */
const heldAt = (db: Db, text: string, hold: () => Promise<void>): Db =>
  new Proxy(db, {
    get(target, property) {
      if (property === 'transaction') {
        const transaction: Db['transaction'] = (work, config) =>
          target.transaction((tx) => work(heldAt(tx, text, hold) as typeof tx), config);
        return transaction;
      }
      if (property !== 'execute') return Reflect.get(target, property, target);
      return async (statement: SQL) => {
        const said = statement.queryChunks.map((chunk) => (chunk instanceof StringChunk ? chunk.value : ''));
        if (said.join('').includes(text)) await hold();
        return target.execute(statement);
      };
    },
  });

/** Table, name and definition of each, without the schema. */
const indexesOf = async (store: ReadStore<Db>, schema: string | null) =>
  rowsOf(
    await store.shared(),
    sql`select tablename, indexname, replace(indexdef, ${`${schema}.`}, '') as indexdef from pg_indexes
      where schemaname = ${schema} order by 1, 2`,
  );

const postgres = needsPostgres();
suite(postgresHarness({ ...postgres }));
// Both stores are PostgreSQL: in the fast set one is enough.
if (LONG || postgres.skip) suite(pgliteHarness());

function suite(harness: ReadStoreHarness): void {
  describe(harness.name, harness.needs, () => {
    after(() => harness.end());

    test('built before any service runs, its rows are those of the log, in any batches', async () => {
      for (const batchSize of [7, 8192]) {
        const store = await harness.fresh();
        const log = await logOf(30);
        const result = await rebuilt(log, store, { batchSize });
        assert.deepEqual(
          [result.outcome, result.events, result.rows.jobs, result.rows.decisions],
          ['built', log.events.length, 30, 30],
        );
        await assertFolded(log, store);
        const runner = runnerOver(log, store);
        await reached(runner, await log.head());
        await runner.stop();
      }
    });

    test('beside current rows it is built, then the pointer flips; --check finds them equal', async () => {
      const store = await harness.fresh();
      const log = await logOf(12);
      await project(log, store);
      const before = await schemaOf(log, store);
      assert.equal((await rebuilt(log, store, { check: true, batchSize: 10 })).outcome, 'equal');
      assert.equal(await schemaOf(log, store), before);
      const indexes = await indexesOf(store, before);
      assert.ok(indexes.length > 10);
      await rebuilt(log, store);
      const built = await schemaOf(log, store);
      assert.notEqual(built, before);
      assert.deepEqual(await indexesOf(store, built), indexes);
      const states = (await schemas(store)).map(({ state }) => state).sort();
      assert.deepEqual(states, ['current', 'replaced']);
      await assertFolded(log, store);
      assert.equal((await rebuilt(log, store, { check: true })).outcome, 'equal');
    });

    test('--check names table, key and column of each row that differs, and changes nothing', async () => {
      const store = await harness.fresh();
      const log = await logOf(4);
      const db = await project(log, store);
      await db.execute(
        sql`update jobs set payment = '{"payer": "0xsomebody"}', attempts = 5 where id = ${jobIdOf(1)}`,
      );
      await db.execute(sql`delete from proofs where job_id = ${jobIdOf(2)}`);
      await db.execute(sql`insert into receipts select 'rcpt_odd', job_id, decision_id, key_id, jws, verified, signed_at,
      position from receipts limit 1`);
      const before = await allRows(db);
      const found = await rebuilt(log, store, { check: true });
      assert.equal(found.outcome, 'different');
      assert.deepEqual(
        found.different.map(({ table, differing, first }) => [table, differing, first]),
        [
          ['jobs', 1, [{ key: jobIdOf(1), kind: 'differs', columns: ['attempts', 'payment'] }]],
          ['receipts', 1, [{ key: 'rcpt_odd', kind: 'surplus', columns: [] }]],
          ['proofs', 1, [{ key: jobIdOf(2), kind: 'missing', columns: [] }]],
        ],
      );
      // An embedded store has one handle, which the check has set to its own rows.
      assert.deepEqual(await allRows(await rowsFor(log, store)), before);
      await rebuilt(log, store);
      assert.equal((await rebuilt(log, store, { check: true })).outcome, 'equal');
    });

    test('--check says that rows which were lost are built again', async () => {
      const store = await harness.fresh();
      const log = await logOf(4);
      const db = await project(log, store);
      const checked = async () => {
        const { outcome, healing } = await rebuilt(log, store, { check: true });
        return [outcome, healing];
      };
      await db.execute(sql`delete from proofs where job_id = ${jobIdOf(2)}`);
      assert.deepEqual(await checked(), ['different', 'deleted']);
      // As a service does that finds it, before it builds new ones.
      const schema = (await schemaOf(log, store)) ?? assert.fail();
      await (await store.shared()).transaction((tx) => retire(tx, schema, 'incomplete'));
      await assert.rejects(
        checked(),
        (error) => error instanceof CannotRebuild && /replaced/.test(`${error}`),
      );
      await project(log, store);
      assert.deepEqual(await checked(), ['equal', null]);
      await appendAll(log, jobAppends({ ...PLAN, seed: 60 }));
      assert.deepEqual(await checked(), ['equal', 'behind']);
      await project(log, store);
      assert.deepEqual(await checked(), ['equal', null]);
    });

    test('what the purge took away does not come back, and is counted', async () => {
      const store = await harness.fresh();
      const log = await logOf(6);
      const db = await project(log, store);
      const before = new Date(PLAN.startedAtMs + 60_000).toISOString();
      await purgeOnce(db, { jobs: before, receipts: null });
      await appendAll(log, jobAppends({ ...PLAN, seed: 50, startedAtMs: PLAN.startedAtMs + 3_600_000 }));
      const rows = await allRows(await project(log, store));
      assert.equal(rows.jobs?.length, 1);
      assert.equal((await rebuilt(log, store, { check: true })).outcome, 'equal');
      await rebuilt(log, store);
      const now = await rowsFor(log, store);
      assert.deepEqual(await allRows(now), rows);
      assert.deepEqual(await storeQueries(now).counts(), { jobs: 1, receipts: 7 });
    });

    test('ended in the middle, it leaves the current rows and continues the next time', async () => {
      const store = await harness.fresh();
      const log = await logOf(20);
      const db = await project(log, store);
      const before = await allRows(db);
      const stopping = {
        batchSize: 10,
        onProgress: (events: number) => {
          if (events >= 40) throw new Error('killed');
        },
      };
      await assert.rejects(rebuilt(log, store, stopping), /killed/);
      assert.deepEqual(await allRows(await rowsFor(log, store)), before);
      const { events } = await rebuilt(log, store);
      assert.equal(events, log.events.length - 40);
      await assertFolded(log, store);
    });

    test('of a log that was restored meanwhile nothing is continued, and no lost row stays current', async () => {
      const store = await harness.fresh();
      const log = await logOf(5);
      const backup = log.events.length;
      for (const seed of [6, 7]) await appendAll(log, jobAppends({ ...PLAN, seed }));
      await project(log, store);
      const stopping = {
        batchSize: 50,
        onProgress: (events: number) => assert.equal(events, 0),
      };
      await assert.rejects(rebuilt(log, store, stopping));
      log.restore(backup);
      await appendAll(log, jobAppends({ ...PLAN, seed: 8 }));
      await assert.rejects(rebuilt(log, store, { check: true }), CannotRebuild);
      assert.equal((await rebuilt(log, store)).outcome, 'built');
      await assertFolded(log, store);
    });

    test('it ends at a damaged event, which its error names', async () => {
      const store = await harness.fresh();
      const log = await logOf(3);
      const spoilt = log.events[7] ?? assert.fail();
      log.spoil(spoilt);
      await assert.rejects(
        rebuilt(log, store, { batchSize: 3 }),
        (error) => error instanceof EventDamaged && error.damage.from === spoilt.position,
      );
    });

    test('without the event log it ends, and continues the next time', async () => {
      const store = await harness.fresh();
      const log = await logOf(5);
      const leaves = {
        batchSize: 10,
        onProgress: (events: number) => log.setAway(events >= 10),
      };
      await assert.rejects(rebuilt(log, store, leaves), EventLogUnavailable);
      log.setAway(false);
      assert.equal((await rebuilt(log, store)).outcome, 'built');
      await assertFolded(log, store);
    });

    test('nothing to rebuild or to compare is said in a sentence', async () => {
      const store = await harness.fresh();
      const empty = memoryLog();
      await assert.rejects(
        rebuilt(empty, store),
        new CannotRebuild('the event log is empty: nothing to rebuild'),
      );
      await assert.rejects(rebuilt(await logOf(1), store, { check: true }), CannotRebuild);
    });

    if (harness.name === 'pglite') return;

    test('new rows that cannot be copied are written by statements', async () => {
      const store = await harness.fresh();
      const log = await logOf(6);
      let refused = 0;
      const copyRows = async () => {
        refused++;
        throw new Error('the connection was lost');
      };
      const deps = { log, judgeReceipt: judgeBySignature, clock: systemClock(), logger: silent };
      const { outcome } = await rebuild({ ...deps, store: { ...store, copyRows } }, { batchSize: 7 });
      assert.equal(outcome, 'built');
      assert.ok(refused > 1);
      await assertFolded(log, store);
    });

    test('rows that are deleted after the last batch do not become current', async () => {
      const store = await harness.fresh();
      const log = await logOf(6);
      let deleted = 0;
      const head = async () => {
        const [building] = await schemas(store);
        if (building !== undefined && deleted === 0) {
          const db = await store.open(building.schema);
          const gone = sql`delete from proofs where job_id = ${jobIdOf(2)} returning job_id`;
          deleted = (await rowsOf(db, gone)).length;
        }
        return log.head();
      };
      const changed = new Proxy(log, {
        get: (target, name) => (name === 'head' ? head : Reflect.get(target, name, target)),
      });
      await assert.rejects(rebuilt(changed, store), /were changed meanwhile/);
      assert.equal(deleted, 1);
      assert.deepEqual(
        (await schemas(store)).map(({ state }) => state),
        ['building'],
      );
    });

    test('under a running service rows only grow, on every process, through every flip', async () => {
      const [store, other] = [await harness.fresh(), await harness.again()];
      const log = await logOf(10);
      const runners = [runnerOver(log, store), runnerOver(log, other)];
      for (const runner of runners) await waitFor('the head', () => runner.reachedHead());
      const state = { over: false, least: 10, seed: 1000 };
      const counts = async (runner: (typeof runners)[number]) =>
        (await storeQueries(await runner.open()).counts()).jobs;
      const reading = runners.map(async (runner) => {
        while (!state.over) {
          const { least } = state;
          while (!(await runner.reachedHead())) assert.equal(state.over, false);
          const found = await counts(runner);
          assert.ok(found >= least, `${found} of ${least}`);
        }
      });
      const writing = (async () => {
        while (!state.over) {
          await appendAll(log, jobAppends({ ...PLAN, seed: state.seed++ }));
          state.least++;
          await systemClock().sleep(5);
        }
      })();
      for (let round = 0; round < 3; round++) {
        assert.equal((await rebuilt(log, store)).outcome, 'built');
        assert.equal((await rebuilt(log, store, { check: true })).outcome, 'equal');
      }
      state.over = true;
      await Promise.all([...reading, writing]);
      for (const runner of runners) await runner.stop();
      assert.deepEqual(await allRows(await project(log, store)), await folded(log));
    });

    test('beside a live writer nothing is projected into the new rows until they have their indexes', async () => {
      const [store, other] = [await harness.fresh(), await harness.again()];
      const log = await logOf(10);
      const begunAt = await log.head();
      const service = runnerOver(log, other);
      await waitFor('the current rows', () => service.reachedHead());
      const before = await schemaOf(log, store);
      const indexing = Promise.withResolvers<void>();
      const mayIndex = Promise.withResolvers<void>();
      const beside = await rebuildStoreOf(store);
      const held = heldAt(await beside.shared(), 'CREATE INDEX', async () => {
        indexing.resolve();
        await mayIndex.promise;
      });
      const deps = { log, judgeReceipt: judgeBySignature, clock: systemClock(), logger: silent };
      const building = rebuild({ ...deps, store: { ...beside, shared: async () => held } }, { batchSize: 7 });
      await Promise.race([indexing.promise, building]);
      const [built] = (await schemas(store)).filter(({ state }) => state === 'building');
      const builtTo = async () => {
        const from = sql`${sql.identifier(built?.schema ?? '')}.projection`;
        const rows = await rowsOf<{ position: string }>(
          await store.shared(),
          sql`select position from ${from}`,
        );
        return rows[0]?.position;
      };
      const state = { over: false, seed: 100 };
      const write = () => appendAll(log, jobAppends({ ...PLAN, seed: state.seed++ }));
      for (let n = 0; n < 20; n++) await write();
      await waitFor('the current rows', () => service.reachedHead());
      assert.equal(await builtTo(), begunAt);
      const writing = (async () => {
        for (; !state.over; await systemClock().sleep(5)) await write();
      })();
      mayIndex.resolve();
      const { outcome } = await building;
      state.over = true;
      await writing;
      assert.equal(outcome, 'built');
      const after = await schemaOf(log, store);
      assert.equal(after, built?.schema);
      assert.deepEqual(await indexesOf(store, after), await indexesOf(store, before));
      await waitFor('the new rows', () => service.reachedHead());
      await service.stop();
      await assertFolded(log, store);
      await beside.close();
    });

    test('a release built before it is deployed starts complete, purged as the release before', async () => {
      const store = await harness.fresh();
      const log = await logOf(6);
      const old = await project(log, store);
      await purgeOnce(old, { jobs: '2027', receipts: null });
      const models = READ_MODELS.map((model) => ({ ...model, version: model.version + 1 }));
      await rebuilt(log, store, { models });
      const db = await rowsFor(log, store, models);
      assert.equal((await allRows(db)).jobs?.length, 0);
      assert.deepEqual(await storeQueries(db).counts(), { jobs: 0, receipts: 6 });
      const runner = runnerOver(log, store, { models });
      assert.equal(await runner.ready(), true);
      assert.deepEqual(await storeQueries(await runner.open()).counts(), { jobs: 0, receipts: 6 });
      await runner.stop();
      // The release before still has its own.
      assert.deepEqual(
        (await schemas(store)).map(({ state }) => state),
        ['current', 'current'],
      );
    });

    test('one rebuild of a generation at a time', async () => {
      const store = await harness.fresh();
      const log = await logOf(3);
      const held = Promise.withResolvers<void>();
      const asked = Promise.withResolvers<void>();
      const head = async () => {
        asked.resolve();
        await held.promise;
        return log.head();
      };
      const slow: EventLog = { ...log, head };
      const first = rebuilt(slow, store);
      await asked.promise;
      await assert.rejects(rebuilt(log, store), /another rebuild or check is running/);
      held.resolve();
      assert.equal((await first).outcome, 'built');
    });

    test("--prune drops what no process uses, and keeps this release's", async () => {
      const store = await harness.fresh();
      const log = await logOf(2);
      await project(log, store);
      await rebuilt(log, store);
      const shared = await store.shared();
      await shared.execute(sql`update read_model_generations set used_at = now() - interval '1 hour'`);
      const beside = await rebuildStoreOf(store);
      const [replaced] = (await schemas(store)).filter(({ state }) => state === 'replaced');
      assert.deepEqual(await prune(beside, log), [replaced?.schema]);
      await beside.close();
      await assertFolded(log, store);
    });
  });
}
