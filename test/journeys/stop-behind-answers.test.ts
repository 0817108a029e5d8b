// A supervisor stops one of several processes while the log is faulty: work after an answer is finished if possible, an
// append of unknown outcome does not keep the process alive, and a stopped start ends at once.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { hitsOf } from '#test/support/given/fault-words.ts';
import type { EventStoreServer } from '#test/support/log/eventstore-server.ts';
import { needsPostgres } from '#test/support/log/postgres.ts';
import { startCli } from '#test/support/process/cli-process.ts';
import { type Cluster, makeCluster } from '#test/support/process/cluster.ts';
import { logLines, spawnService, waitFor } from '#test/support/process/service.ts';
import { STOP_LIMIT_MS } from '#test/support/world/health-states.ts';
import { execute } from '#test/support/world/service-world.ts';

const needs = needsPostgres();
/** Below the half minute that a start waits for a log. */
const AT_ONCE_MS = 20_000;

describe('SIGTERM while the log is faulty', needs, () => {
  let cluster: Cluster;
  let eventStore: EventStoreServer;
  before(async () => {
    cluster = await makeCluster('eventstoredb+postgres');
    assert.ok(cluster.eventStore);
    eventStore = cluster.eventStore;
  });
  after(() => cluster?.end());

  /** Which of the jobs' events are stored. */
  const stored = () =>
    eventStore.events.map(({ type }) => type).filter((type) => /^(Job|Attempt)/.test(type));

  for (const [name, ways, begin] of [
    ['takes no appends', ['main', 'serve'], () => eventStore.faults.refuseAppends(1e6)],
    ['is unavailable', ['main'], () => eventStore.stop()],
    ['is frozen', ['main'], async () => eventStore.faults.freeze()],
  ] as const) {
    for (const way of ways) {
      test(`${way}: before it listens, the log ${name}: it ends at once`, async () => {
        await begin();
        const env = { PORT: '0', NO_COLOR: '1', DENO_NO_UPDATE_CHECK: '1', ...cluster.env };
        const it = way === 'main' ? spawnService(env) : startCli(['serve'], { env });
        await waitFor('it waits', () => /did not confirm an append|log does not answer/.test(it.stdout()));
        const begun = performance.now();
        it.signal('SIGTERM');
        const { code, stdout, stderr } = await it.ended;
        const took = performance.now() - begun;
        assert.deepEqual([code, stderr], [0, ''], stdout);
        assert.ok(took < AT_ONCE_MS, `${took} ms`);
        assert.ok(!logLines(stdout).some(({ msg }) => msg === 'listening'));
        eventStore.faults.refuseAppends(0);
        if (name.endsWith('unavailable')) await eventStore.start();
        if (name.endsWith('frozen')) await eventStore.faults.thaw();
      });
    }
  }

  test('a call without a key that was answered 503 is closed and not sent, then the process ends', async () => {
    const { target } = cluster.world;
    const service = await cluster.start();
    eventStore.faults.freeze();
    const { status } = await execute(service, { url: target.url('/behind') });
    assert.equal(status, 503);
    await eventStore.faults.thaw();
    service.signal('SIGTERM');
    const { code, stderr } = await service.ended;
    assert.deepEqual([code, stderr], [0, '']);
    assert.deepEqual(stored(), ['JobStarted', 'AttemptMade', 'JobCompleted']);
    assert.equal(hitsOf(cluster.world, '/behind'), 0);
  });

  test('an append of unknown outcome after an answer keeps no process alive', async () => {
    const { target } = cluster.world;
    const service = await cluster.start();
    const cli = startCli(['serve'], {
      env: { PORT: '0', NO_COLOR: '1', DENO_NO_UPDATE_CHECK: '1', ...cluster.env },
    });
    const listening = /"listen":"([^"]+)"/;
    await cli.until((stdout) => listening.test(stdout));
    const served = { url: `http://${listening.exec(cli.stdout())?.[1]}` };
    await eventStore.stop();
    const before = stored().length;
    for (const one of [service, served]) {
      assert.equal((await execute(one, { url: target.url('/unknown') })).status, 503);
    }
    for (const it of [service, cli]) {
      await waitFor('an append is repeated', () => /did not confirm an append/.test(it.stdout()));
    }
    const begun = performance.now();
    service.signal('SIGTERM');
    cli.signal('SIGTERM');
    for (const { ended } of [service, cli]) {
      const { code, stderr } = await ended;
      assert.deepEqual([code, stderr], [0, '']);
    }
    const took = performance.now() - begun;
    assert.ok(took < STOP_LIMIT_MS, `${took} ms`);
    await eventStore.start();
    assert.equal(stored().length, before);
    assert.equal(hitsOf(cluster.world, '/unknown'), 0);
  });
});
