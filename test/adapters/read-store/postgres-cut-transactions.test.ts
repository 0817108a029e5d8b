// Transactions whose server stops: between two statements, and in the middle of one.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { sql } from 'drizzle-orm';
import { postgresReadStore } from '#src/adapters/read-store/postgres.ts';
import { type FreezingProxy, startFreezingProxy } from '#test/support/freezing-proxy.ts';
import { needsPostgres, type PostgresServer, postgresServer } from '#test/support/postgres.ts';
import { waitFor } from '#test/support/service.ts';

const needs = { ...needsPostgres(), timeout: 120_000 };
const WORKERS = 6;
const OUTAGES = 4;

let server: PostgresServer;
/** Between the two, as in a real network, the last words of the server and the end of its connection come apart. */
let proxy: FreezingProxy;
let url: string;
before(async () => {
  if (needs.skip) return;
  server = await postgresServer();
  const direct = new URL(await server.newDatabase());
  proxy = await startFreezingProxy(Number(direct.port));
  direct.port = String(proxy.port);
  url = direct.href;
});
after(async () => {
  await proxy?.close();
  await server?.remove();
});

// postgres.js throws outside of every promise there, which ends a process: this file's as well.
test(
  `postgres: ${OUTAGES} stops under ${WORKERS} transactions at a time: each fails by itself, none hangs, and nothing else is thrown`,
  needs,
  async (t) => {
    const { power } = server;
    if (power === null) return t.skip('the server of TEST_DATABASE_URL is not ours to stop');
    const store = postgresReadStore({ url });
    await store.open();
    let over = false;
    const counts = { done: 0, failed: 0 };
    async function transact(): Promise<void> {
      const db = await store.open();
      await db.transaction(async (tx) => {
        for (let n = 0; n < 5; n++) {
          await tx.execute(sql`select pg_sleep(0.002)`);
          await sleep(n);
        }
      });
    }
    async function worker(): Promise<void> {
      while (!over) {
        await transact().then(
          () => counts.done++,
          () => counts.failed++,
        );
        // The store makes a fresh pool for the next one.
        await sleep(5);
      }
    }
    const workers = Promise.all(Array.from({ length: WORKERS }, worker));
    for (let outage = 0; outage < OUTAGES; outage++) {
      const { done, failed } = counts;
      await waitFor('transactions', () => counts.done >= done + 2 * WORKERS);
      await power.stop();
      await waitFor('all have failed', () => counts.failed >= failed + WORKERS);
      await power.start();
    }
    const { done } = counts;
    await waitFor('transactions again', () => counts.done >= done + 2 * WORKERS);
    over = true;
    await workers;
    assert.deepEqual(await store.health(), { ok: true });
    await store.close();
  },
);

test(
  'postgres: connections reset in the middle of statements: each transaction fails, and nothing else is thrown',
  needs,
  async () => {
    const store = postgresReadStore({ url });
    for (let round = 0; round < 5; round++) {
      const db = await store.open();
      const transactions = Array.from({ length: WORKERS }, () =>
        db.transaction(async (tx) => {
          await tx.execute(sql`select 'being reset', pg_sleep(5)`);
        }),
      );
      const all = Promise.all(transactions.map((transaction) => assert.rejects(transaction)));
      await waitFor('statements under way', async () => {
        const [row] = await db.execute(
          sql`select count(*)::int as n from pg_stat_activity where query like '%being reset%' and wait_event = 'PgSleep'`,
        );
        return row?.n === WORKERS;
      });
      proxy.reset();
      await all;
      await waitFor('a fresh pool', async () => (await store.open()) !== db);
    }
    await waitFor('answers again', async () => (await store.health()).ok);
    await store.close();
  },
);

test(
  'postgres: work that ends after its connection was lost is not committed to nobody',
  needs,
  async (t) => {
    const { power } = server;
    if (power === null) return t.skip('the server of TEST_DATABASE_URL is not ours to stop');
    const store = postgresReadStore({ url });
    const db = await store.open();
    const under = Array.from({ length: WORKERS }, () => {
      const begun = Promise.withResolvers<void>();
      const end = Promise.withResolvers<void>();
      const transaction = db.transaction(async (tx) => {
        await tx.execute(sql`select 1`);
        begun.resolve();
        await end.promise;
      });
      return { begun: begun.promise, end: end.resolve, lost: assert.rejects(transaction) };
    });
    await Promise.all(under.map(({ begun }) => begun));
    await power.stop();
    await Promise.all(under.map(({ lost }) => lost));
    for (const { end } of under) end();
    await power.start();
    await waitFor('answers again', async () => (await store.health()).ok);
    await store.close();
  },
);
