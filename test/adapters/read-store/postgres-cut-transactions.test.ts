// Transactions whose server stops or whose connections are reset: between two statements, and in the middle of one.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { sql } from 'drizzle-orm';
import { postgresReadStore } from '#src/adapters/read-store/postgres.ts';
import { needsPostgres, type PostgresServer, postgresServer } from '#test/support/log/postgres.ts';
import { type FreezingProxy, startFreezingProxy } from '#test/support/process/freezing-proxy.ts';
import { waitFor } from '#test/support/process/service.ts';

const needs = needsPostgres();
const WORKERS = 6;
const OUTAGES = 4;
const RESETS = 30;

type PostgresStore = ReturnType<typeof postgresReadStore>;
type Counts = { done: number; failed: number };

let server: PostgresServer;
/** Between the two, as in a real network, the last words of the server and the end of its connection come apart. */
let proxy: FreezingProxy;
let url: string;
describe('transactions that are cut off', needs, () => {
  before(async () => {
    server = await postgresServer({ own: true });
    const direct = new URL(await server.newDatabase());
    proxy = await startFreezingProxy(Number(direct.port));
    direct.port = String(proxy.port);
    url = direct.href;
  });
  after(async () => {
    await proxy.close();
    await server.remove();
  });

  /** Transactions all the time, each on the pool of the moment, until `use` is done. */
  async function underLoad(store: PostgresStore, use: (counts: Counts) => Promise<void>): Promise<void> {
    let over = false;
    let working = WORKERS;
    const counts = { done: 0, failed: 0 };
    async function transact(): Promise<void> {
      const db = await store.shared();
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
      working--;
    }
    for (let started = 0; started < WORKERS; started++) void worker();
    await use(counts).finally(() => {
      over = true;
    });
    await waitFor('none hangs', () => working === 0);
    await waitFor('answers', async () => (await store.health()).ok);
    await store.close();
  }

  const someMore = async (counts: Counts): Promise<void> => {
    const { done } = counts;
    await waitFor('transactions', () => counts.done >= done + 2 * WORKERS);
  };

  // postgres.js throws outside of every promise there, which ends a process: this file's as well.
  test(`postgres: ${OUTAGES} stops under ${WORKERS} transactions at a time: each fails separately, none hangs, and nothing else is thrown`, async (t) => {
    const { power } = server;
    if (power === null) return t.skip('the server of TEST_DATABASE_URL is not ours to stop');
    await underLoad(postgresReadStore({ url }), async (counts) => {
      for (let outage = 0; outage < OUTAGES; outage++) {
        const { failed } = counts;
        await someMore(counts);
        await power.stop();
        await waitFor('all have failed', () => counts.failed >= failed + WORKERS);
        await power.start();
      }
      await someMore(counts);
    });
  });

  test(`postgres: ${RESETS} resets of all connections, in a statement or while they are made: each fails separately, and nothing else is thrown`, async () => {
    await underLoad(postgresReadStore({ url }), async (counts) => {
      for (let reset = 0; reset < RESETS; reset++) {
        await someMore(counts);
        const { done, failed } = counts;
        proxy.reset();
        await waitFor('work', () => counts.failed > failed || counts.done > done);
        // The fresh ones, if there are any yet, as they begin.
        proxy.reset();
      }
      await someMore(counts);
      assert.ok(counts.failed > 0);
    });
  });

  test('postgres: work that ends after its connection was lost is reported as failed, not as committed', async (t) => {
    const { power } = server;
    if (power === null) return t.skip('the server of TEST_DATABASE_URL is not ours to stop');
    const store = postgresReadStore({ url });
    const db = await store.shared();
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
  });
});
