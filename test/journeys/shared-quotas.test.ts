// Limits over the processes of one deployment: each limit holds over both processes, or over each alone while PostgreSQL
// is unavailable.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { needsPostgres } from '#test/support/log/postgres.ts';
import { type Cluster, makeCluster } from '#test/support/process/cluster.ts';
import { logLines, type Service, waitFor } from '#test/support/process/service.ts';
import { execute } from '#test/support/world/service-world.ts';

const needs = needsPostgres();
const PER_CLIENT = 30;
const PER_TARGET = 40;
const AWAY = 'Postgres does not count quotas: each process counts alone until it does.';
const BACK = 'Postgres answers again: all processes count quotas together';

describe('limits over two processes', needs, () => {
  let cluster: Cluster;
  let pair: readonly [Service, Service];
  let clients = 0;
  let hosts = 0;
  /** A fresh client address. */
  const newClient = () => `198.51.${Math.floor(++clients / 250)}.${clients % 250}`;
  const newHost = () => `host-${++hosts}.target.test`;

  before(async () => {
    cluster = await makeCluster('sqlite+postgres', { ownPostgres: true });
    const env = {
      POLICY_MODE: 'blocklist-quota',
      RATE_LIMIT_PER_MINUTE: `${PER_CLIENT}`,
      TARGET_QUOTA_PER_MINUTE: `${PER_TARGET}`,
      TRUSTED_PROXIES: '127.0.0.0/8',
    };
    pair = await Promise.all([cluster.start(env), cluster.start(env)]);
  });
  after(() => cluster.end());

  /** Calls at once, by turns on both: how many came back with each status and code. */
  async function calls(count: number, client: () => string, host: string): Promise<Record<string, number>> {
    const answers = await Promise.all(
      Array.from({ length: count }, (_, n) => {
        const url = cluster.world.target.url('/', host);
        return execute(pair[n % 2 === 0 ? 0 : 1], { url }, { 'x-forwarded-for': client() });
      }),
    );
    const outcomes: Record<string, number> = {};
    for (const { status, body } of answers) {
      const outcome = status === 200 ? '200' : `${status} ${body.error?.code}`;
      outcomes[outcome] = (outcomes[outcome] ?? 0) + 1;
    }
    return outcomes;
  }

  /** The log lines of each process that it counts alone, and together again. */
  const switches = () =>
    pair.map(({ stdout }) =>
      logLines(stdout()).flatMap(({ msg }) => (msg === AWAY || msg === BACK ? [String(msg)] : [])),
    );
  const allLog = (what: string) =>
    waitFor(what, () => switches().every((lines) => (lines.at(-1) ?? BACK) === what));

  /** Repeats if a process lost PostgreSQL meanwhile, as on an overloaded machine. */
  async function together(work: () => Promise<Record<string, number>>): Promise<Record<string, number>> {
    for (let tries = 0; tries < 5; tries++) {
      await allLog(BACK);
      const before = JSON.stringify(switches());
      const outcomes = await work();
      if (JSON.stringify(switches()) === before) return outcomes;
    }
    return assert.fail('PostgreSQL is lost sight of all the time');
  }

  const fromOneClient = () => {
    const client = newClient();
    return calls(2 * PER_CLIENT, () => client, newHost());
  };

  test('the rate of one client address: exactly the limit passes, at any process', async () => {
    assert.deepEqual(await together(fromOneClient), { 200: PER_CLIENT, '429 rate_limited': PER_CLIENT });
  });

  test('the quota of one target host: exactly the limit passes, at any process', async () => {
    const outcomes = await together(() => calls(2 * PER_TARGET, newClient, newHost()));
    assert.deepEqual(outcomes, { 200: PER_TARGET, '429 target_quota_exceeded': PER_TARGET });
  });

  test('PostgreSQL unavailable: each process admits the limit and no more, and no call fails', async () => {
    assert.ok(cluster.postgres.power, 'a server of its own: unset TEST_DATABASE_URL');
    await cluster.postgres.power.stop();
    const client = newClient();
    assert.deepEqual(await calls(4 * PER_CLIENT, () => client, newHost()), {
      200: 2 * PER_CLIENT,
      '429 rate_limited': 2 * PER_CLIENT,
    });
    await allLog(AWAY);
  });

  test('PostgreSQL back: one limit over both again', async () => {
    await cluster.postgres.power?.start();
    await allLog(BACK);
    assert.deepEqual(await together(fromOneClient), { 200: PER_CLIENT, '429 rate_limited': PER_CLIENT });
  });

  test('both end regularly', async () => {
    for (const service of pair) {
      const { code, stderr } = await service.stop();
      assert.deepEqual([code, stderr], [0, '']);
    }
  });
});
