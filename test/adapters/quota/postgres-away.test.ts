// While Postgres is stopped, frozen or slow, each process counts separately; later all count together again.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { after, before, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import type { QuotaDb } from '#src/adapters/quota/postgres.ts';
import { sleep } from '#src/lib/time.ts';
import type { QuotaRule } from '#src/ports/quota.ts';
import { quotaContract } from '#test/support/contract/quota.contract.ts';
import { needsPostgres, type PostgresServer, postgresServer } from '#test/support/log/postgres.ts';
import { quotaOver, type SharedQuota, sharedQuota } from '#test/support/log/shared-quota.ts';
import { type FreezingProxy, startFreezingProxy } from '#test/support/process/freezing-proxy.ts';
import { runtimeCommand } from '#test/support/process/runtime.ts';
import { waitFor } from '#test/support/process/service.ts';

const needs = needsPostgres();
const script = new URL('./quota-process.ts', import.meta.url).href;
const AWAY = 'Postgres does not count quotas: each process counts alone until it does.';
const BACK = 'Postgres answers again: all processes count quotas together';
const rule = (name: string, maxRequests = 10): QuotaRule => ({ name, windowMs: 600_000, maxRequests });

async function allowed(quota: SharedQuota, of: QuotaRule, calls: number): Promise<number> {
  const states = await Promise.all(Array.from({ length: calls }, () => quota.take(of, 'a')));
  return states.filter((state) => state.allowed).length;
}

const refusing = (): Promise<QuotaDb> => Promise.reject(new Error('connection refused'));

quotaContract({
  name: 'shared, with Postgres away',
  needs: { skip: false },
  fresh: () => quotaOver(refusing, {}),
  end: async () => undefined,
});

describe('quota without Postgres', () => {
  test('a store that never answers is waited for once and logged once', async () => {
    let asked = 0;
    const silent = () => {
      asked += 1;
      return new Promise<never>(() => undefined);
    };
    const quota = await quotaOver(silent, { retryMs: 60_000 });
    assert.equal(await allowed(quota, rule('silent'), 30), 10);
    assert.deepEqual([asked, quota.messages], [1, [AWAY]]);
    await quota.end();
  });

  test('the number of hanging probes is limited', async () => {
    let asked = 0;
    const silent = () => {
      asked += 1;
      return new Promise<never>(() => undefined);
    };
    const quota = await quotaOver(silent, { limitMs: 2, retryMs: 1 });
    await waitFor('three tries', () => asked === 3);
    for (let n = 0; n < 50; n++) await sleep(2);
    assert.equal(asked, 3);
    await quota.end();
  });

  test('no timer or connection keeps a process alive', async () => {
    const [command, args] = runtimeCommand(fileURLToPath(script));
    const child = spawn(command, args, { stdio: ['ignore', 'pipe', 'inherit'] });
    let output = '';
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      output += text;
    });
    const [code] = await once(child, 'close');
    assert.deepEqual([code, output], [0, 'counted\n']);
  });
});

describe('quota of two processes while Postgres stops and starts', needs, () => {
  let server: PostgresServer;
  let proxy: FreezingProxy;
  /** Through the proxy. */
  let url: string;
  let pair: readonly [SharedQuota, SharedQuota];

  before(async () => {
    server = await postgresServer({ own: true });
    const behind = new URL(await server.newDatabase());
    proxy = await startFreezingProxy(Number(behind.port));
    behind.port = String(proxy.port);
    behind.hostname = '127.0.0.1';
    url = behind.href;
  });
  after(async () => {
    for (const quota of pair) await quota.end();
    await proxy.close();
    await server.remove();
  });

  /** Both have logged these lines and no others. */
  const bothTold = (lines: readonly string[]) =>
    waitFor(`the message: ${lines.at(-1)}`, () =>
      pair.every(({ messages }) => messages.length >= lines.length),
    ).then(() => {
      for (const { messages } of pair) assert.deepEqual(messages, lines);
    });

  test('frozen: no call exceeds its time limit, and each process allows at most the limit, earlier units included', async () => {
    pair = await Promise.all([
      sharedQuota(url, { limitMs: 8000, retryMs: 100 }),
      sharedQuota(url, { limitMs: 8000, retryMs: 100 }),
    ]);
    const [one, other] = pair;
    assert.equal(await allowed(one, rule('frozen'), 6), 6);
    proxy.freeze();
    // 6 were allowed by the first, which does not count those of the other.
    assert.deepEqual(
      [await allowed(one, rule('frozen'), 30), await allowed(other, rule('frozen'), 30)],
      [4, 10],
    );
    assert.equal((await one.look(rule('frozen'), 'a')).allowed, false);
    await bothTold([AWAY]);
  });

  test('thawed: counted together again; a window that a process filled alone remains full for it', async () => {
    proxy.thaw();
    await bothTold([AWAY, BACK]);
    const [one, other] = pair;
    assert.deepEqual(
      [await allowed(one, rule('frozen'), 5), await allowed(other, rule('frozen'), 5)],
      [0, 0],
    );
    assert.equal((await allowed(one, rule('thawed'), 7)) + (await allowed(other, rule('thawed'), 7)), 10);
  });

  test('stopped and started again: the same, on new connections', async () => {
    assert.ok(server.power, 'a server of its own: unset TEST_DATABASE_URL');
    await server.power.stop();
    const [one, other] = pair;
    assert.deepEqual(
      [await allowed(one, rule('stopped'), 30), await allowed(other, rule('stopped'), 30)],
      [10, 10],
    );
    await bothTold([AWAY, BACK, AWAY]);
    await server.power.start();
    await bothTold([AWAY, BACK, AWAY, BACK]);
    assert.equal((await allowed(one, rule('started'), 7)) + (await allowed(other, rule('started'), 7)), 10);
  });
});
