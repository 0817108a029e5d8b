// PostgreSQL is stopped for 20 s under load, in both tiers that use it: every execution is answered as the target
// answered, reads are 503, and afterwards the read models catch up automatically.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { type Cluster, makeCluster, TIERS } from '#test/support/cluster.ts';
import { type FaultLoad, startFaultLoad } from '#test/support/fault-load.ts';
import { assertReadsAway, isHealthy, monitoring } from '#test/support/fault-words.ts';
import { needsPostgres } from '#test/support/postgres.ts';
import { logLines, type Service, waitFor } from '#test/support/service.ts';
import { assertStands } from '#test/support/service-stands.ts';
import { execute } from '#test/support/service-world.ts';

const needs = needsPostgres();
const OUTAGE_MS = 20_000;
const CALLERS = 10;
/** An answer waits 1 s for its links. The rest is for a slow machine. */
const ANSWERED_WITHIN_MS = 6000;
/** A read waits 5 s at most for a database that does not answer; here the connections are refused. */
const READ_WITHIN_MS = 6000;

for (const tier of TIERS) {
  describe(`${tier}: PostgreSQL stopped for ${OUTAGE_MS / 1000} s under load`, needs, () => {
    let cluster: Cluster;
    let services: readonly Service[];
    let load: FaultLoad;

    before(async () => {
      cluster = await makeCluster(tier, { ownPostgres: true });
      // One after the other: the first makes the key file.
      services = [await cluster.start(), await cluster.start()];
      const { power } = cluster.postgres;
      assert.ok(power, 'a server of its own: unset TEST_DATABASE_URL');
    });
    after(() => cluster.end());

    test('no execution fails, no answer waits for PostgreSQL; reads are 503, health is 200', async () => {
      const { power } = cluster.postgres;
      // Any error answer fails the load.
      load = startFaultLoad(cluster.world, services, {
        callers: CALLERS,
        name: 'outage',
        repeatAfter: [],
        paceMs: 100,
      });
      await waitFor('some answers', () => load.acknowledged.length >= 2 * CALLERS);
      await power?.stop();
      const stopped = performance.now();
      const before = load.acknowledged.length;
      const logged = services.map((service) => service.stdout().length);
      await waitFor('answers without PostgreSQL', () => load.acknowledged.length >= before + 2 * CALLERS);
      const { executed } = load.acknowledged.at(-1) ?? assert.fail();
      for (const service of services) await assertReadsAway(service, executed, READ_WITHIN_MS);
      await waitFor('the outage is over', () => performance.now() - stopped >= OUTAGE_MS, {
        everyMs: 100,
      });
      const during = load.acknowledged.length - before;
      assert.ok(during > 4 * CALLERS, `${during} answers`);
      await power?.start();
      const { length } = load.acknowledged;
      await waitFor('answers with PostgreSQL', () => load.acknowledged.length >= length + 4 * CALLERS);
      await load.finish();
      assert.deepEqual([...load.refusals], []);
      assert.ok(load.slowestMs() < ANSWERED_WITHIN_MS, `${load.slowestMs()} ms`);
      for (const [n, service] of services.entries()) {
        await waitFor('quotas are counted together again', () =>
          /count quotas together/.test(service.stdout().slice(logged[n])),
        );
      }
    });

    test('back: both catch up without a restart: totals, links of answers given meanwhile, health', async () => {
      const { length } = load.acknowledged;
      for (const service of services) {
        const { stats } = await waitFor('all are caught up', async () => {
          const { status, body } = await monitoring(service);
          return status === 200 && body.stats.total >= length && body.stats.running === 0 && body;
        });
        assert.deepEqual([stats.total, stats.running], [length, 0]);
        await waitFor('health is good again', () => isHealthy(service));
      }
      for (const service of services) {
        const { status, body } = await execute(service, { url: cluster.world.target.url('/after-1') });
        assert.equal(status, 200);
        for (const other of services) await assertStands(other, body);
      }
      await load.assertKept(services);
      for (const service of services) {
        const { code, stdout, stderr } = await service.stop();
        assert.deepEqual([code, stderr], [0, '']);
        const errors = logLines(stdout).filter(({ level }) => level === 'error');
        assert.ok(
          errors.every(({ code: of }) => of === 'read_models_unavailable'),
          JSON.stringify(errors.slice(0, 3)),
        );
      }
    });
  });
}
