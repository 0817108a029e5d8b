// The event log becomes unavailable while the target works, for longer than any caller waits: callers get the address of
// the result, the result is found there, and a supervisor's stop still ends in time.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { type Cluster, makeCluster } from '#test/support/cluster.ts';
import type { EventStoreServer } from '#test/support/eventstore-server.ts';
import { assertAway, attemptsIn, hitsOf, isHealthy, jobNamed, jobOf } from '#test/support/fault-words.ts';
import { needsPostgres } from '#test/support/postgres.ts';
import { type Service, waitFor } from '#test/support/service.ts';
import { assertStands } from '#test/support/service-stands.ts';
import { type Answered, type ErrorBody, type Executed, execute } from '#test/support/service-world.ts';
import type { Answer } from '#test/support/tls-target.ts';

const needs = needsPostgres();
/** attempts × timeoutMs + 15 s, as in JobStarted. */
const LEASE_MS = 1000 + 15_000;
/** How long a caller waits for a job that was sent. */
const BUDGET_MS = 110_000;
/** A supervisor's limit. */
const STOP_MS = 120_000;

describe('the log unavailable for longer than a caller waits', needs, () => {
  let cluster: Cluster;
  let eventStore: EventStoreServer;
  /** Has an outcome that is not stored yet, and survives. */
  let owner: Service;
  /** The same, and is stopped by its supervisor. */
  let ending: Service;
  let watching: Service;
  let kept: { readonly answer: Answered<Executed & ErrorBody>; readonly tookMs: number };
  let lost: { readonly answer: Answered<Executed & ErrorBody>; readonly tookMs: number };
  const request = (name: string) => ({
    url: cluster.world.target.url(`/${name}`),
    idempotencyKey: name,
    timeoutMs: 1000,
  });

  before(async () => {
    cluster = await makeCluster('eventstoredb+postgres');
    assert.ok(cluster.eventStore);
    eventStore = cluster.eventStore;
    [owner, ending, watching] = [await cluster.start(), await cluster.start(), await cluster.start()];
  });
  after(() => cluster?.end());

  const timed = async (service: Service, name: string) => {
    const begun = performance.now();
    const answer = await execute(service, request(name));
    return { answer, tookMs: performance.now() - begun };
  };

  test('callers get 503 with their job within the budget; the stopped process ends in time', {
    timeout: 180_000,
  }, async () => {
    const held = Promise.withResolvers<Answer>();
    cluster.world.target.answer(() => held.promise);
    const calls = Promise.all([timed(owner, 'kept'), timed(ending, 'lost')]);
    await waitFor('both are at the target', () => cluster.world.target.requests.length === 2);
    await eventStore.stop();
    held.resolve({ status: 201 });
    const begun = performance.now();
    ending.signal('SIGTERM');
    [kept, lost] = await calls;
    const { code, stderr } = await ending.ended;
    const stopTookMs = performance.now() - begun;
    assert.deepEqual([code, stderr], [0, '']);
    assert.ok(stopTookMs < STOP_MS, `${stopTookMs} ms`);
    for (const [service, name, { answer, tookMs }] of [
      [owner, 'kept', kept],
      [ending, 'lost', lost],
    ] as const) {
      assertAway(answer, 'event_log_unavailable');
      assert.match(answer.body.error.message, /the result will be found at the job/);
      jobNamed(service, answer);
      assert.ok(tookMs > LEASE_MS && tookMs < BUDGET_MS + 5000, `${name}: ${tookMs} ms`);
    }
  });

  test('back: the surviving process stores its outcome at once; its key replays it everywhere, with one receipt', async () => {
    const id = jobNamed(owner, kept.answer);
    await eventStore.start();
    await waitFor(
      'the job has its result',
      async () => (await jobOf(watching, id)).body.status === 'succeeded',
    );
    for (const service of [watching, owner]) {
      await waitFor('health is good again', () => isHealthy(service));
      const { status, body } = await execute(service, request('kept'));
      assert.deepEqual(
        [status, body.idempotentReplay, body.job.id, body.job.responseStatus],
        [200, true, id, 201],
      );
      assert.deepEqual(attemptsIn(body), [['yes', null]]);
      await assertStands(service, body);
    }
    assert.equal(hitsOf(cluster.world, '/kept'), 1);
  });
});
