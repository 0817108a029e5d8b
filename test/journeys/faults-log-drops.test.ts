// Under load the log's connections are cut repeatedly, its subscriptions are dropped, its server is killed and restarted:
// nothing is sent twice, nothing acknowledged is lost, and every started job has its receipt.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { assertHealth, assertOneSetEach, isHealthy, monitoring } from '#test/support/given/fault-words.ts';
import type { EventStoreServer } from '#test/support/log/eventstore-server.ts';
import { needsPostgres } from '#test/support/log/postgres.ts';
import { type Cluster, makeCluster } from '#test/support/process/cluster.ts';
import { type FaultLoad, startFaultLoad } from '#test/support/process/fault-load.ts';
import { type Service, waitFor } from '#test/support/process/service.ts';

const needs = needsPostgres();
const CALLERS = 20;
const CUTS = 40;

describe('connections to the log cut under load', needs, () => {
  let cluster: Cluster;
  let eventStore: EventStoreServer;
  let services: readonly Service[];
  let load: FaultLoad;

  before(async () => {
    cluster = await makeCluster('eventstoredb+postgres');
    assert.ok(cluster.eventStore);
    eventStore = cluster.eventStore;
    services = await Promise.all([cluster.start(), cluster.start()]);
  });
  after(() => cluster?.end());

  test(`${CUTS} cuts under ${CALLERS} callers over two processes: one request for each key, every receipt stands`, async () => {
    load = startFaultLoad(cluster.world, services, {
      callers: CALLERS,
      name: 'cut',
      repeatAfter: ['event_log_unavailable', 'idempotency_in_progress'],
    });
    for (let cut = 0; cut < CUTS; cut++) {
      // Triggered by stored events, not by the clock: each cut hits appends in flight.
      const from = eventStore.appends();
      await waitFor('some appends', () => eventStore.appends() > from + 5, { everyMs: 1 });
      if (cut % 8 === 7) {
        await eventStore.stop();
        await eventStore.start();
      } else if (cut % 8 === 3) eventStore.faults.dropSubscriptions();
      else if (cut % 2 === 0) eventStore.faults.drop();
      else eventStore.faults.loseAnswers(1);
    }
    await load.finish();
    assert.ok(load.acknowledged.length > CUTS);
  });

  test('afterwards: no job runs, each has one set of events, both processes show all jobs and are healthy', async () => {
    const jobs = assertOneSetEach(eventStore);
    assert.equal(jobs, load.acknowledged.length);
    for (const service of services) {
      const { stats } = await waitFor('all are projected', async () => {
        const { status, body } = await monitoring(service);
        return status === 200 && body.stats.total >= jobs && body.stats.running === 0 && body;
      });
      assert.equal(stats.total, jobs);
      await waitFor('health is good', () => isHealthy(service));
      await assertHealth(service);
    }
    await load.assertKept(services);
    assert.equal(assertOneSetEach(eventStore), jobs, 'replays write nothing');
    assert.equal(cluster.world.target.requests.length, jobs);
    for (const service of services) {
      const { code, stderr } = await service.stop();
      assert.deepEqual([code, stderr], [0, '']);
    }
  });
});
