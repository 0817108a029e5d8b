// The event log becomes unavailable while the target works, for longer than a lease: a surviving owner records its outcome;
// another process closes the job of a dead owner; nothing is sent again.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { type Cluster, makeCluster } from '#test/support/cluster.ts';
import type { EventStoreServer } from '#test/support/eventstore-server.ts';
import {
  assertOneSetEach,
  assertReplays,
  attemptsIn,
  hitsOf,
  monitoring,
} from '#test/support/fault-words.ts';
import { needsPostgres } from '#test/support/postgres.ts';
import { type Service, waitFor } from '#test/support/service.ts';
import { assertStands } from '#test/support/service-stands.ts';
import { type Answered, type ErrorBody, type Executed, execute } from '#test/support/service-world.ts';
import type { Answer } from '#test/support/tls-target.ts';

const needs = needsPostgres();
/** attempts × timeoutMs + 15 s, as in JobStarted. */
const LEASE_MS = 1000 + 15_000;
const GRACE_MS = 30_000;

describe('the log unavailable for longer than a lease', needs, () => {
  let cluster: Cluster;
  let eventStore: EventStoreServer;
  /** Has an outcome that is not stored yet, and survives. */
  let owner: Service;
  /** The same, and is killed. */
  let dying: Service;
  /** Closes jobs without an owner. */
  let watching: Service;
  let kept: Answered<Executed & ErrorBody>;
  let backAt: number;
  const request = (name: string) => ({
    url: cluster.world.target.url(`/${name}`),
    idempotencyKey: name,
    timeoutMs: 1000,
  });

  before(async () => {
    cluster = await makeCluster('eventstoredb+postgres');
    assert.ok(cluster.eventStore);
    eventStore = cluster.eventStore;
    [owner, dying, watching] = [await cluster.start(), await cluster.start(), await cluster.start()];
    const held = Promise.withResolvers<Answer>();
    cluster.world.target.answer(() => held.promise);
    const keeping = execute(owner, request('kept'));
    const cut = execute(dying, request('lost')).catch(() => null);
    await waitFor('both are at the target', () => cluster.world.target.requests.length === 2);
    // Before the outage the observing process has both jobs among its candidates.
    await waitFor('both are seen', async () => (await monitoring(watching)).body.stats?.running === 2);
    await eventStore.stop();
    held.resolve({ status: 201 });
    const wentAt = performance.now();
    await waitFor('it has the outcome', () => /did not confirm an append/.test(dying.stdout()));
    await dying.kill();
    assert.equal(await cut, null);
    await waitFor('the lease is over', () => performance.now() - wentAt > LEASE_MS);
    await eventStore.start();
    backAt = performance.now();
    kept = await keeping;
  });
  after(() => cluster?.end());

  test('surviving owner: its outcome is recorded, its caller answered, a repeat replays everywhere', async () => {
    const { status, body } = kept;
    assert.deepEqual([status, body.idempotentReplay, body.job.responseStatus], [200, false, 201]);
    assert.deepEqual(attemptsIn(body), [['yes', null]]);
    for (const service of [owner, watching]) {
      await assertReplays(service, request('kept'), body);
      await assertStands(service, body);
    }
    assert.equal(hitsOf(cluster.world, '/kept'), 1);
  });

  test('dead owner: another process closes its job after lease and grace, with a receipt', async () => {
    const { body } = await waitFor(
      'another process has closed it',
      async () => {
        const answer = await execute(watching, request('lost'));
        if (answer.status !== 409) return answer;
        assert.equal(answer.body.error.code, 'idempotency_in_progress');
        return undefined;
      },
      { limitMs: 100_000, everyMs: 200 },
    );
    const watched = performance.now() - backAt;
    assert.ok(watched >= LEASE_MS + GRACE_MS, `closed after ${watched} ms`);
    assert.deepEqual(
      [body.job.status, body.job.errorCategory, body.idempotentReplay],
      ['failed', 'interrupted_unknown', true],
    );
    assert.deepEqual(attemptsIn(body), [['maybe', 'interrupted_unknown']]);
    for (const service of [owner, watching]) {
      await assertReplays(service, request('lost'), body);
      await assertStands(service, body);
    }
    assert.equal(hitsOf(cluster.world, '/lost'), 1);
    assert.equal(assertOneSetEach(eventStore), 2);
  });
});
