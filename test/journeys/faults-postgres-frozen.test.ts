// PostgreSQL keeps its connections and does not answer, in both tiers that use it: executions continue, reads are 503 in
// time, no request hangs; when it resumes, the read models catch up automatically.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { assertReadsAway, isHealthy, monitoring } from '#test/support/given/fault-words.ts';
import { needsPostgres } from '#test/support/log/postgres.ts';
import { type Cluster, makeCluster, TIERS } from '#test/support/process/cluster.ts';
import { type FaultLoad, startFaultLoad } from '#test/support/process/fault-load.ts';
import { type FreezingProxy, startFreezingProxy } from '#test/support/process/freezing-proxy.ts';
import { type Service, waitFor } from '#test/support/process/service.ts';
import { assertStands } from '#test/support/world/service-stands.ts';
import { execute } from '#test/support/world/service-world.ts';

const needs = needsPostgres();
const CALLERS = 5;
/** An answer waits 1 s for its links and 0.5 s for shared quotas. The rest is for a slow machine. */
const ANSWERED_WITHIN_MS = 8000;
/** A read waits at most 5 s, and is repeated after 1 s if it finds nothing. The rest is for a slow machine. */
const READ_WITHIN_MS = 20_000;

for (const tier of TIERS) {
  describe(`${tier}: PostgreSQL frozen`, needs, () => {
    let cluster: Cluster;
    let proxy: FreezingProxy;
    let service: Service;
    let load: FaultLoad;

    before(async () => {
      cluster = await makeCluster(tier);
      const behind = new URL(cluster.env.DATABASE_URL ?? '');
      proxy = await startFreezingProxy(Number(behind.port));
      behind.port = String(proxy.port);
      service = await cluster.start({ DATABASE_URL: behind.href });
    });
    after(async () => {
      await cluster.end();
      await proxy.close();
    });

    test('no execution fails or hangs; reads are 503 in time; health is 200 with that part not ok', async () => {
      load = startFaultLoad(cluster.world, [service], {
        callers: CALLERS,
        name: 'frozen',
        repeatAfter: [],
        paceMs: 100,
      });
      await waitFor('some answers', () => load.acknowledged.length >= CALLERS);
      proxy.freeze();
      const { executed } = load.acknowledged.at(-1) ?? assert.fail();
      for (let round = 0; round < 2; round++)
        await assertReadsAway(service, executed, READ_WITHIN_MS, `/api/jobs/job_${'0'.repeat(26)}`);
      const during = load.acknowledged.length;
      await waitFor('answers without PostgreSQL', () => load.acknowledged.length >= during + 2 * CALLERS);
    });

    test('it resumes: the read models catch up, and answers given meanwhile stay valid', async () => {
      proxy.thaw();
      await load.finish();
      assert.ok(load.slowestMs() < ANSWERED_WITHIN_MS, `${load.slowestMs()} ms`);
      const { length } = load.acknowledged;
      const { stats } = await waitFor('all are caught up', async () => {
        const { status, body } = await monitoring(service);
        return status === 200 && body.stats.total >= length && body;
      });
      assert.deepEqual([stats.total, stats.running], [length, 0]);
      await waitFor('health is good again', () => isHealthy(service));
      await load.assertKept([service]);
      const { status, body } = await execute(service, { url: cluster.world.target.url('/after-1') });
      assert.equal(status, 200);
      await assertStands(service, body);
      const { code, stderr } = await service.stop();
      assert.deepEqual([code, stderr], [0, '']);
    });
  });
}
