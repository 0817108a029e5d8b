// A rebuild that is interrupted, disturbed or spoiled: the live rows stay as they were, and readers are not kept.
import assert from 'node:assert/strict';
import { after, describe, test } from 'node:test';
import { sql } from 'drizzle-orm';
import postgres from 'postgres';
import { CannotRebuild, RebuildFailed } from '#projections/rebuild-lock.ts';
import { READ_MODELS } from '#projections/registry.ts';
import type { Db } from '#projections/rows.ts';
import { postgresRebuildStore } from '#src/adapters/read-store/postgres-rebuild.ts';
import type { RebuildStore, RebuildTransaction } from '#src/ports/rebuild-store.ts';
import { appendAll, jobAppends, PLAN, recorded } from '#test/support/job-histories.ts';
import { memoryLog } from '#test/support/memory-log.ts';
import { needsPostgres } from '#test/support/postgres.ts';
import { asStored, rowsAfter } from '#test/support/read-model-rows.ts';
import { allRows } from '#test/support/read-store.ts';
import {
  leftovers,
  postgresRebuilds,
  project,
  rebuildWith,
  storeBefore,
} from '#test/support/rebuild-world.ts';
import { waitFor } from '#test/support/service.ts';

const needs = needsPostgres();
const harness = postgresRebuilds(needs);

/** Live rows of 20 jobs, and one more connection. */
async function given() {
  const { store, url, rebuild } = await harness.fresh();
  const log = memoryLog();
  for (let seed = 0; seed < 20; seed++)
    await appendAll(log, jobAppends({ ...PLAN, seed, answers: [500, 200] }));
  await project(log, store);
  const db = await store.open();
  const good = await allRows(db);
  await db.execute(sql`update jobs set attempts = 9`);
  const client = postgres(url, { max: 2, onnotice: () => undefined });
  clients.push(client);
  return { store, url, rebuild, log, db, good, spoiled: await allRows(db), client };
}
const clients: postgres.Sql[] = [];

/** As PostgreSQL's, with another COPY. */
function storeWith(url: string, change: (text: string, table: string) => string): RebuildStore<Db> {
  const store = postgresRebuildStore({ url });
  const changed = ({ db, copy }: RebuildTransaction<Db>): RebuildTransaction<Db> => ({
    db,
    copy: copy && ((table, columns, text) => copy(table, columns, change(text, table))),
  });
  return {
    ...store,
    transaction: (work, isolation) => store.transaction((tx) => work(changed(tx)), isolation),
  };
}

const interrupted = new Error('interrupted');
const interruptAfter = (count: number) => ({
  batchSize: 10,
  onProgress: ({ eventsHere }: { eventsHere: number }) => {
    if (eventsHere >= count) throw interrupted;
  },
});

describe('a rebuild', { ...needs, timeout: 120_000 }, () => {
  after(async () => {
    for (const client of clients) await client.end({ timeout: 5 });
    await harness.end();
  });

  test('that was interrupted goes on where it was, and counts every event once', async () => {
    const { rebuild, log, db, good, spoiled } = await given();
    await assert.rejects(rebuild(log, interruptAfter(30)), interrupted);
    assert.deepEqual(await allRows(db), spoiled);
    assert.deepEqual(await leftovers(db), ['public_rebuild']);
    const { events, eventsHere } = await rebuild(log, { batchSize: 7 });
    assert.deepEqual([events, eventsHere], [log.events.length, log.events.length - 30]);
    assert.deepEqual(await allRows(db), good);
    assert.deepEqual(await leftovers(db), []);
  });

  test('of other models, versions or kind than that which was interrupted begins anew', async () => {
    const { rebuild, log, db, good } = await given();
    const newer = READ_MODELS.map((model) => ({ ...model, version: model.version + 1 }));
    const events = log.events.length;
    for (const options of [{ models: READ_MODELS.slice(0, 2) }, { check: true }, { models: newer }]) {
      await assert.rejects(rebuild(log, interruptAfter(30)), interrupted);
      assert.equal((await rebuild(log, options)).eventsHere, events);
    }
    assert.deepEqual(await allRows(db), good);
  });

  test('of a log that was put back and has grown since begins anew', async () => {
    const { store, rebuild } = await harness.fresh();
    const [log, other] = [memoryLog(), memoryLog()];
    for (let seed = 0; seed < 20; seed++) {
      await appendAll(log, jobAppends({ ...PLAN, seed }));
      await appendAll(other, jobAppends({ ...PLAN, seed: seed < 2 ? seed : seed + 50 }));
    }
    const put = memoryLog();
    for (const [n, { stream, id, type, data, metadata }] of other.events.entries())
      await put.append(stream, 'any', [
        { id: n === 0 ? (log.events[0]?.id ?? '') : id, type, data, metadata },
      ]);
    await assert.rejects(rebuild(log, interruptAfter(30)), interrupted);
    assert.equal((await rebuild(put)).eventsHere, put.events.length);
    assert.deepEqual(await allRows(await store.open()), asStored(await rowsAfter(recorded(put))));
  });

  test('whose rows are not all there refuses the swap', async () => {
    const { rebuild, url, log, db, good, spoiled } = await given();
    const dropOne = (text: string, table: string) =>
      table === 'jobs' ? text.slice(text.indexOf('\n') + 1) : text;
    await assert.rejects(rebuildWith(storeWith(url, dropOne), log), (error: Error) => {
      assert.ok(error instanceof RebuildFailed);
      assert.match(error.message, /^jobs has 19 rows, and 20 were folded/);
      return true;
    });
    assert.deepEqual(await allRows(db), spoiled);
    // What was spoiled is not gone on with.
    assert.deepEqual(await leftovers(db), []);
    assert.equal((await rebuild(log)).eventsHere, log.events.length);
    assert.deepEqual(await allRows(db), good);
  });

  test('whose rows are not what was folded refuses the swap', async () => {
    const { rebuild, url, log, db, good, spoiled } = await given();
    const change = (text: string, table: string) =>
      table === 'receipts' ? text.replaceAll('rcpt_', 'rcpx_') : text;
    await assert.rejects(rebuildWith(storeWith(url, change), log), RebuildFailed);
    const later = (text: string) => text.replaceAll('2026-01-02T', '2026-01-03T');
    await assert.rejects(rebuildWith(storeWith(url, later), log), RebuildFailed);
    assert.deepEqual(await allRows(db), spoiled);
    await rebuild(log);
    assert.deepEqual(await allRows(db), good);
  });

  test('whose row the database refuses ends, at once', async () => {
    const { url, log, db, spoiled } = await given();
    for (const change of [
      (text: string) => text.replace('\t', '\u0001\t\t\t'),
      (text: string) => `${text}${text.slice(0, text.indexOf('\n') + 1)}`,
    ]) {
      await assert.rejects(rebuildWith(storeWith(url, change), log), /refused|COPY|extra data|duplicate/i);
    }
    assert.deepEqual(await allRows(db), spoiled);
  });

  test('is one at a time: the second says so, and the first is not disturbed', async () => {
    const { rebuild, url, log, db, good } = await given();
    const told: unknown[] = [];
    const store = storeBefore(url, 6, async () => {
      for (const check of [false, true]) told.push(await rebuild(log, { check }).catch((error) => error));
    });
    assert.equal((await rebuildWith(store, log, { batchSize: 10 })).eventsHere, log.events.length);
    assert.deepEqual(
      told.map((error) => error instanceof CannotRebuild && error.message),
      Array(2).fill('another rebuild or check is at work on this database'),
    );
    assert.deepEqual(await allRows(db), good);
  });

  test('waits for who holds a table, and keeps no reader waiting behind it', async () => {
    const { rebuild, log, client, db, good } = await given();
    const held = Promise.withResolvers<void>();
    const holding = Promise.withResolvers<void>();
    const holder = client.begin(async (tx) => {
      await tx`select count(*) from jobs`;
      holding.resolve();
      await held.promise;
    });
    await holding.promise;
    let over = false;
    const rebuilding = rebuild(log).finally(() => {
      over = true;
    });
    for (let seen = 0; seen < 3; seen++) {
      await waitFor('the swap waits for the table', async () => {
        const [row] = await client`select count(*)::int as n from pg_locks where mode = 'AccessExclusiveLock'
          and not granted and relation = 'jobs'::regclass`;
        return row?.n > 0;
      });
      await client.begin(async (tx) => {
        // As long as the lock's timeout, and some: a reader behind it gets through when the swap gives way.
        await tx`set local statement_timeout = '5s'`;
        await tx`select count(*) from jobs`;
      });
    }
    assert.equal(over, false);
    held.resolve();
    await holder;
    assert.equal((await rebuilding).outcome, 'swapped');
    assert.deepEqual(await allRows(db), good);
  });

  test('waits for the projector', async () => {
    const { rebuild, log, client, db, good } = await given();
    const held = Promise.withResolvers<void>();
    const holding = Promise.withResolvers<void>();
    const holder = client.begin(async (tx) => {
      await tx`select pg_advisory_xact_lock(125779768603953)`;
      holding.resolve();
      await held.promise;
    });
    await holding.promise;
    const handled = Promise.withResolvers<void>();
    let over = false;
    const rebuilding = rebuild(log, {
      onProgress: ({ events }) => events === log.events.length && handled.resolve(),
    }).finally(() => {
      over = true;
    });
    await handled.promise;
    await client`select pg_sleep(0.2)`;
    assert.equal(over, false);
    held.resolve();
    await holder;
    await rebuilding;
    assert.deepEqual(await allRows(db), good);
  });

  test('whose connection is lost ends, and goes on at the next time', async () => {
    const { rebuild, url, log, client, db, good } = await given();
    const store = storeBefore(url, 10, async (own) => {
      const cut = await client`select pg_terminate_backend(pid) from pg_stat_activity
        where application_name = 'webhook-relay rebuild' and datname = current_database()`;
      assert.equal(cut.length, 1);
      // Connected again, in another session, which has no lock: somebody else may rebuild by now.
      const connected = () => own.transaction(async () => true).catch(() => false);
      await waitFor('there is another connection', connected);
    });
    await assert.rejects(rebuildWith(store, log, { batchSize: 10 }), /connection of the rebuild was lost/);
    const { events, eventsHere } = await rebuild(log);
    assert.equal(events, log.events.length);
    assert.ok(eventsHere > 0 && eventsHere < events, `${eventsHere} of ${events}`);
    assert.deepEqual(await allRows(db), good);
  });

  test('keeps what others were granted', async () => {
    const { rebuild, log, client } = await given();
    const name = `reader_${Date.now()}`;
    await client.unsafe(`create role ${name}; grant select on jobs to ${name} with grant option;
      grant select, update on proofs to public`);
    const grants =
      () => client`select c.relname, a.grantee::regrole::text as to, a.privilege_type, a.is_grantable
      from pg_class c, aclexplode(c.relacl) a where c.relname in ('jobs', 'proofs') order by 1, 2, 3`;
    const before = [...(await grants())];
    assert.ok(before.length > 2);
    await rebuild(log);
    assert.deepEqual([...(await grants())], before);
  });

  test('does not happen where a view of somebody depends on a table: that is said, and all stays', async () => {
    const { rebuild, log, client, db, good, spoiled } = await given();
    await client.unsafe('create view dashboard as select id from jobs');
    await assert.rejects(rebuild(log), (error: Error) => /depend/.test(String(error.cause ?? error)));
    assert.deepEqual(await allRows(db), spoiled);
    await client.unsafe('drop view dashboard');
    await rebuild(log);
    assert.deepEqual(await allRows(db), good);
  });

  test('does not touch a schema in its way that is not its own', async () => {
    const { rebuild, log, client, db } = await given();
    await client.unsafe('create schema public_rebuild; create table public_rebuild.treasure (gold int)');
    await assert.rejects(rebuild(log), CannotRebuild);
    assert.deepEqual([...(await client`select * from public_rebuild.treasure`)], []);
    assert.deepEqual(await leftovers(db), ['public_rebuild']);
  });

  test('works in the schema where the live tables are, whatever its name', async () => {
    const { store, url, rebuild } = await harness.fresh();
    const client = postgres(url, { max: 1, onnotice: () => undefined });
    clients.push(client);
    const database = new URL(url).pathname.slice(1);
    await client.unsafe(`create schema "Own"; alter database ${database} set search_path to "Own", public`);
    const log = memoryLog();
    await appendAll(log, jobAppends(PLAN));
    await project(log, store);
    const db = await store.open();
    const good = await allRows(db);
    await db.execute(sql`update jobs set attempts = 9`);
    await rebuild(log);
    assert.deepEqual(await allRows(db), good);
    const [{ n }] = (await client`select count(*)::int as n from pg_tables where schemaname = 'Own'`) as [
      { n: number },
    ];
    const [{ m }] = (await client`select count(*)::int as m from pg_tables where schemaname = 'public'`) as [
      { m: number },
    ];
    assert.ok(n > 10);
    assert.equal(m, 0);
  });
});
