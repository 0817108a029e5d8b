// A supervisor stops one of several processes while the log or PostgreSQL is unavailable: calls in flight are answered, and
// the process exits in bounded time with code 0.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { type Cluster, makeCluster } from '#test/support/cluster.ts';
import type { EventStoreServer } from '#test/support/eventstore-server.ts';
import { assertAway, assertOneSetEach, assertReplays, hitsOf } from '#test/support/fault-words.ts';
import { type FreezingProxy, startFreezingProxy } from '#test/support/freezing-proxy.ts';
import { needsPostgres } from '#test/support/postgres.ts';
import { logLines, type Service, waitFor } from '#test/support/service.ts';
import { assertStands } from '#test/support/service-stands.ts';
import { type Executed, execute, get } from '#test/support/service-world.ts';
import type { Answer } from '#test/support/tls-target.ts';

const needs = needsPostgres();
const CALLS = 5;
/** Nothing is in flight: only the parts have to be closed. Far below the 120 s of a supervisor. */
const IDLE_END_MS = 30_000;

describe('SIGTERM to one of many', needs, () => {
  let cluster: Cluster;
  let eventStore: EventStoreServer;
  let proxy: FreezingProxy;
  /** Keeps running, and shows what the others have left. */
  let witness: Service;
  let viaProxy: string;

  before(async () => {
    cluster = await makeCluster('eventstoredb+postgres', { ownPostgres: true });
    assert.ok(cluster.eventStore);
    eventStore = cluster.eventStore;
    const behind = new URL(cluster.env.DATABASE_URL ?? '');
    proxy = await startFreezingProxy(Number(behind.port));
    behind.port = String(proxy.port);
    viaProxy = behind.href;
    witness = await cluster.start();
  });
  after(async () => {
    await cluster?.end();
    await proxy?.close();
  });

  type InFlight = {
    readonly service: Service;
    readonly requests: readonly unknown[];
    release(): void;
    readonly answers: Promise<Executed[]>;
  };

  /** A new process with calls that the target holds. */
  async function withCalls(name: string, calls: number): Promise<InFlight> {
    const { target } = cluster.world;
    const service = await cluster.start({ DATABASE_URL: viaProxy });
    assert.equal((await get(`${service.url}/api/monitoring/executions`)).status, 200);
    const held = Promise.withResolvers<Answer>();
    target.answer(() => held.promise);
    const requests = Array.from({ length: calls }, (_, n) => ({
      url: target.url(`/${name}`),
      idempotencyKey: `${name} ${n}`,
    }));
    const answers = Promise.all(
      requests.map(async (request) => {
        const { status, body } = await execute(service, request);
        assert.equal(status, 200, JSON.stringify(body));
        return body;
      }),
    );
    answers.catch(() => undefined);
    await waitFor('all are at the target', () => hitsOf(cluster.world, `/${name}`) === calls);
    return { service, requests, release: () => held.resolve({}), answers };
  }

  /** What worked is believed for 25 s. */
  const isDown = ({ url }: Service) =>
    waitFor('health names the log', async () => (await get(`${url}/health`)).status === 503);

  async function assertEndsWell({ ended }: Service, begun: number, withinMs: number): Promise<void> {
    const { code, signal, stdout, stderr } = await ended;
    const took = performance.now() - begun;
    assert.deepEqual([code, signal, stderr], [0, null, '']);
    assert.ok(took < withinMs, `${took} ms`);
    const errors = logLines(stdout).filter(({ level }) => level === 'error');
    assert.deepEqual(errors, []);
  }

  /** Answered by the process that ended, and found at the one that keeps running. */
  async function assertFound(name: string, { requests, answers }: InFlight): Promise<void> {
    for (const [n, body] of (await answers).entries()) {
      await assertReplays(witness, requests[n], body);
      await assertStands(witness, body);
    }
    assert.equal(hitsOf(cluster.world, `/${name}`), requests.length);
  }

  const away: readonly (readonly [title: string, name: string, go: () => unknown, back: () => unknown])[] = [
    ['all is well', 'well', () => undefined, () => undefined],
    ['PostgreSQL is frozen', 'frozen', () => proxy.freeze(), () => proxy.thaw()],
    [
      'PostgreSQL is stopped',
      'stopped',
      () => cluster.postgres.power?.stop(),
      () => cluster.postgres.power?.start(),
    ],
  ];
  for (const [title, name, go, back] of away) {
    test(`${title}: ${CALLS} calls in flight are answered, then it ends`, async () => {
      const it = await withCalls(name, CALLS);
      await go();
      it.service.signal('SIGTERM');
      await waitFor('it accepts nothing more', () =>
        get(`${it.service.url}/health/live`).then(
          () => false,
          () => true,
        ),
      );
      const begun = performance.now();
      it.release();
      await it.answers;
      await assertEndsWell(it.service, begun, IDLE_END_MS);
      await back();
      await waitFor('the witness reads again', async () => {
        const { status } = await get(`${witness.url}/api/monitoring/executions`);
        return status === 200;
      });
      await assertFound(name, it);
    });
  }

  test('the log is unavailable when the target answers, and returns: the calls are answered, then it ends', async () => {
    const it = await withCalls('log-away', CALLS);
    await eventStore.stop();
    it.service.signal('SIGTERM');
    it.release();
    await waitFor('the failed append is logged', () => /did not confirm an append/.test(it.service.stdout()));
    await eventStore.start();
    const begun = performance.now();
    await it.answers;
    await assertEndsWell(it.service, begun, IDLE_END_MS);
    await assertFound('log-away', it);
  });

  for (const [title, go, back] of [
    ['stopped', () => eventStore.stop(), () => eventStore.start()],
    ['frozen', async () => eventStore.faults.freeze(), () => eventStore.faults.thaw()],
  ] as const) {
    test(`the log is ${title} and nothing is in flight: it ends`, async () => {
      const service = await cluster.start();
      await go();
      await isDown(service);
      const begun = performance.now();
      service.signal('SIGTERM');
      await assertEndsWell(service, begun, IDLE_END_MS);
      await back();
      await waitFor('the log is back', async () => (await get(`${witness.url}/health`)).status === 200);
    });
  }

  test('PostgreSQL was frozen before it started: it starts, executes, answers reads with 503, and ends', async () => {
    proxy.freeze();
    const service = await cluster.start({ DATABASE_URL: viaProxy });
    cluster.world.target.answer(() => ({}));
    const { status, body } = await execute(service, { url: cluster.world.target.url('/from-start') });
    assert.equal(status, 200);
    assertAway(await get(`${service.url}/api/receipts/${body.receipt.id}`), 'read_models_unavailable');
    const begun = performance.now();
    service.signal('SIGTERM');
    await assertEndsWell(service, begun, IDLE_END_MS);
    proxy.thaw();
    await assertStands(witness, body);
  });

  test('both are unavailable: it ends', async () => {
    const service = await cluster.start({ DATABASE_URL: viaProxy });
    proxy.freeze();
    eventStore.faults.freeze();
    await isDown(service);
    const begun = performance.now();
    service.signal('SIGTERM');
    await assertEndsWell(service, begun, IDLE_END_MS);
    proxy.thaw();
    await eventStore.faults.thaw();
  });

  test('the other process: no job is left running, one set of events for each job', async () => {
    assert.equal(assertOneSetEach(eventStore), 4 * CALLS + 1);
    await waitFor('the witness is well', async () => (await get(`${witness.url}/health`)).status === 200);
    const begun = performance.now();
    witness.signal('SIGTERM');
    await assertEndsWell(witness, begun, IDLE_END_MS);
  });
});
