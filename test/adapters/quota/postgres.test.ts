import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { sql } from 'drizzle-orm';
import { quotaWindows } from '#src/adapters/quota/postgres.ts';
import type { QuotaRule } from '#src/ports/quota.ts';
import { quotaContract } from '#test/support/contract/quota.contract.ts';
import { needsPostgres, type PostgresServer, postgresServer } from '#test/support/log/postgres.ts';
import { type SharedQuota, sharedQuota } from '#test/support/log/shared-quota.ts';
import { waitFor } from '#test/support/process/service.ts';

const needs = needsPostgres();
const minute = (name: string, maxRequests: number): QuotaRule => ({ name, windowMs: 60_000, maxRequests });
let server: PostgresServer;
let url: string;
let processes: readonly [SharedQuota, SharedQuota, SharedQuota];

before(async () => {
  if (needs.skip) return;
  server = await postgresServer();
  url = await server.newDatabase();
  processes = await Promise.all([sharedQuota(url), sharedQuota(url), sharedQuota(url)]);
});
after(async () => {
  if (needs.skip) return;
  for (const quota of processes) await quota.end();
  await server.remove();
});

quotaContract({
  name: 'in Postgres',
  needs,
  fresh: async () => processes[0],
  end: async () => undefined,
});

const allowedOf = (states: readonly { readonly allowed: boolean }[]) =>
  states.filter((state) => state.allowed).length;

describe('quota of three processes', needs, () => {
  test('of 100 concurrent calls on each, exactly the limit is allowed, and each remaining number is returned once', async () => {
    for (let round = 0; round < 5; round++) {
      const states = await Promise.all(
        Array.from({ length: 300 }, (_, n) => processes[n % 3]?.take(minute('race', 100), `${round}`)),
      );
      const left = states.flatMap((state) => (state?.allowed ? [state.remaining] : []));
      assert.deepEqual(
        left.sort((a, b) => b - a),
        Array.from({ length: 100 }, (_, n) => 99 - n),
      );
    }
  });

  test('many concurrent keys in any order do not deadlock', async () => {
    const keys = Array.from({ length: 200 }, (_, n) => `key ${n}`);
    for (let round = 0; round < 10; round++) {
      await Promise.all(
        processes.map((quota, n) => {
          const inOrder = n === 1 ? keys.toReversed() : keys;
          return Promise.all(inOrder.map((key) => quota.take(minute('circle', 1000), key)));
        }),
      );
    }
    for (const key of keys) {
      assert.equal((await processes[0].look(minute('circle', 1000), key)).remaining, 1000 - 31, key);
    }
    assert.deepEqual(
      processes.flatMap(({ messages }) => messages),
      [],
    );
  });

  test('`look` and `take` of one process include the units of the others', async () => {
    const [one, other, third] = processes;
    const rule = minute('seen', 2);
    await one.take(rule, 'a');
    assert.equal((await other.look(rule, 'a')).remaining, 0);
    await other.take(rule, 'a');
    assert.equal((await third.look(rule, 'a')).allowed, false);
    assert.equal((await third.take(rule, 'a')).allowed, false);
    assert.equal((await one.take(rule, 'a')).allowed, false);
  });

  test('processes with different limits count together, and each applies its own limit', async () => {
    const [one, other] = processes;
    assert.equal(allowedOf(await times(3, () => one.take(minute('limits', 5), 'a'))), 3);
    assert.equal((await other.take(minute('limits', 3), 'a')).allowed, false);
    assert.equal((await one.take(minute('limits', 5), 'a')).allowed, true);
    assert.equal((await one.take(minute('limits', 5), 'a')).allowed, false);
  });

  test('a full window costs no further statement', async () => {
    const [one] = processes;
    await times(2, () => one.take(minute('full', 1), 'a'));
    const before = await pointsInAll(one);
    assert.equal(allowedOf(await times(20, () => one.take(minute('full', 1), 'a'))), 0);
    assert.equal(await pointsInAll(one), before);
  });
});

describe('quota windows in the table', needs, () => {
  test('the table reveals no payer, host, address or rule', async () => {
    const secrets = ['0x857b06519E91e3A54538791bDbb0E22373e36b66', 'hooks.example.com', '192.0.2.77'];
    for (const secret of secrets) await processes[0].take(minute('rule-name', 5), secret);
    const db = await processes[0].open();
    const rows = await db.select().from(quotaWindows);
    assert.ok(rows.length >= secrets.length);
    for (const { key } of rows) assert.match(key, /^[\w-]{43}$/);
    const text = JSON.stringify(rows).toLowerCase();
    for (const secret of [...secrets, 'rule-name']) assert.ok(!text.includes(secret.toLowerCase()), secret);
  });

  test('a window created before the clock of Postgres was set back is replaced', async () => {
    const [one, other] = processes;
    const rule = { name: 'set back', windowMs: 1000, maxRequests: 5 };
    const db = await one.open();
    await times(4, () => one.take(rule, 'a'));
    await db.execute(sql`update quota_windows set expire = expire + interval '1 hour'`);
    const { allowed, remaining, resetMs } = await other.take(rule, 'a');
    assert.deepEqual([allowed, remaining], [true, 4]);
    assert.ok(resetMs <= 1000, `${resetMs}`);
  });

  test('ended windows are deleted at intervals, open ones and those that another statement has locked are not', async () => {
    const quota = await sharedQuota(await server.newDatabase(), { limitMs: 30_000, sweepMs: 5 });
    const db = await quota.open();
    await quota.take(minute('open', 5), 'a');
    await db.transaction(async (transaction) => {
      await addWindows(quota, 25);
      // A lock against deletion that permits another statement to change `expire`: locked first, ended then.
      await transaction.execute(
        sql`select 1 from quota_windows where key like 'ending%' limit 3 for key share`,
      );
      await db.execute(
        sql`update quota_windows set expire = now() - interval '1 second' where key like 'ending%'`,
      );
      await waitFor('the others are deleted', async () => (await pointsInAll(quota)) <= 1 + 3);
      assert.equal(await pointsInAll(quota), 1 + 3);
    });
    await waitFor('all are deleted', async () => (await pointsInAll(quota)) === 1);
    assert.equal((await quota.look(minute('open', 5), 'a')).remaining, 3);
    await quota.end();
  });
});

async function times<T>(count: number, act: () => Promise<T>): Promise<T[]> {
  const done: T[] = [];
  for (let n = 0; n < count; n++) done.push(await act());
  return done;
}

async function pointsInAll(quota: SharedQuota): Promise<number> {
  const db = await quota.open();
  const rows = await db.select({ points: quotaWindows.points }).from(quotaWindows);
  return rows.reduce((sum, { points }) => sum + points, 0);
}

async function addWindows(quota: SharedQuota, count: number): Promise<void> {
  const db = await quota.open();
  await db.execute(sql`insert into quota_windows (key, points, expire)
    select 'ending ' || n, 1, now() + interval '1 hour' from generate_series(1, ${count}::int) n`);
}
