// The event log's server is unavailable before anything was sent: the answer is 503, nothing is sent or charged, recorded
// jobs can still be read; and when it is back the service continues without a restart.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { needsAnvil } from '#test/support/chain/local-payments.ts';
import {
  assertAway,
  assertHealth,
  assertOneSetEach,
  assertReplays,
  hitsOf,
  isHealthy,
  jobOf,
  monitoring,
} from '#test/support/given/fault-words.ts';
import { needsPostgres } from '#test/support/log/postgres.ts';
import { type Cluster, makeCluster } from '#test/support/process/cluster.ts';
import { type Service, waitFor } from '#test/support/process/service.ts';
import { assertDelivered, assertSaid, send } from '#test/support/world/paid-call.ts';
import { makePaidWorld, type PaidWorld, type Sample } from '#test/support/world/paid-world.ts';
import { assertStands } from '#test/support/world/service-stands.ts';
import { type Executed, execute, get, post } from '#test/support/world/service-world.ts';

const anvil = needsAnvil();
const postgres = needsPostgres();
const needs = { skip: anvil.skip || postgres.skip };
/** Calls without a key while the log is stopped. */
const REFUSED = 20;

describe('the log stopped before anything was sent', needs, () => {
  let cluster: Cluster;
  let paid: PaidWorld;
  /** One log and one PostgreSQL for both. */
  let free: Service;
  let charging: Service;
  let known: Executed;
  let sample: Sample;
  const knownRequest = () => ({ url: cluster.world.target.url('/known'), idempotencyKey: 'known' });

  before(async () => {
    cluster = await makeCluster('eventstoredb+postgres');
    paid = await makePaidWorld();
    const { DATABASE_URL = '', EVENTSTORE_URL = '', SIGNING_KEYS_FILE = '' } = cluster.env;
    free = await cluster.start();
    charging = await paid.start({ DATABASE_URL, EVENTSTORE_URL, SIGNING_KEYS_FILE });
    const { status, body } = await execute(free, knownRequest());
    assert.equal(status, 200);
    known = body;
    // Projected before the event log stops: the answer does not wait for the read models.
    for (const service of [free, charging]) {
      assert.equal((await jobOf(service, known.job.id)).status, 200);
      const lists = async () => (await get(`${service.url}/api/proofs/recent`)).status === 200;
      await waitFor('the rows to have caught up', lists);
    }
    const [first] = await paid.samples(charging, 'stopped', { count: 1 });
    assert.ok(first);
    sample = first;
    await cluster.eventStore?.stop();
  });
  after(async () => {
    await paid.end();
    await cluster?.end();
  });

  test('a call with a key: 503, no job starts', async () => {
    const answer = await execute(free, { url: cluster.world.target.url('/keyed'), idempotencyKey: 'keyed' });
    assertAway(answer, 'event_log_unavailable');
    assert.equal(answer.body.error.details, undefined);
    assert.match(answer.body.error.message, /nothing was sent/);
    const again = await execute(free, knownRequest());
    assertAway(again, 'event_log_unavailable', 'a replay is read from the log');
  });

  test('a paid call: 503, repeat with the same header; the facilitator settles nothing', async () => {
    const sent = await send(charging, sample);
    assertSaid(sent, 503, 'event_log_unavailable');
    assertAway(sent, 'event_log_unavailable');
    assert.match(sent.body.error.message, /nothing was sent so far\. Repeat with the same payment header/);
    assert.deepEqual(paid.proxy.calls, []);
    await paid.assertBooks([sample], { calls: 0, charges: 0 });
  });

  test('a decision: 503, nothing is recorded', async () => {
    const action = { url: cluster.world.target.url('/decided') };
    const answer = await post(`${free.url}/api/decide/webhook`, { action });
    assertAway(answer, 'event_log_unavailable');
    assert.match(answer.body.error.message, /[Nn]othing/);
  });

  test('recorded jobs are read; unknown ids are 503, never 404; the proof needs the log: 503', async () => {
    const { job, receipt } = known;
    for (const service of [free, charging]) {
      const shown = await jobOf(service, job.id);
      assert.deepEqual(
        [shown.status, shown.body.status, shown.body.receiptId],
        [200, 'succeeded', receipt.id],
      );
      const stored = await get<{ jws: string }>(`${service.url}/api/receipts/${receipt.id}`);
      assert.deepEqual([stored.status, stored.body.jws], [200, receipt.jws]);
      for (const path of ['/api/proofs/recent', '/api/monitoring/executions', '/api/trust']) {
        assert.equal((await get(`${service.url}${path}`)).status, 200, path);
      }
      assertAway(await jobOf(service, `job_${'0'.repeat(26)}`), 'read_models_unavailable');
      for (const path of [`/api/verify/jobs/${job.id}`, `/proof/${job.id}`]) {
        assertAway(await get(`${service.url}${path}`), 'event_log_unavailable', path);
      }
      const keys = await get<{ keys: readonly unknown[] }>(`${service.url}/.well-known/jwks.json`);
      assert.deepEqual([keys.status, keys.body.keys.length], [200, 2]);
    }
  });

  test('health: 503, only because of the event log; the process runs', async () => {
    for (const service of [free, charging]) await assertHealth(service, 'eventLog');
  });

  test('nothing was sent during the outage', () => {
    assert.deepEqual(
      [...cluster.world.target.requests, ...paid.target.requests].map(({ path }) => path),
      ['/known'],
    );
  });

  test('calls without a key whose start may still be recorded: 503; when the log is back, none is sent', async () => {
    const { world, eventStore } = cluster;
    const answers = await Promise.all(
      Array.from({ length: REFUSED }, () =>
        execute(free, { url: world.target.url('/late'), timeoutMs: 1000 }),
      ),
    );
    for (const answer of answers) {
      assertAway(answer, 'event_log_unavailable');
      assert.match(answer.body.error.message, /nothing was sent, and nothing will be: repeat the call/);
    }
    await eventStore?.start();
    await waitFor('the refused calls are closed', async () => {
      const { body } = await monitoring(free);
      return body.stats?.total === 1 + REFUSED && body.stats.running === 0;
    });
    assert.equal(hitsOf(world, '/late'), 0);
  });

  test('back: normal without a restart: health, keys, payments, decisions, proofs', async () => {
    const { world } = cluster;
    const answers: Executed[] = [known];
    for (const service of [free, charging]) {
      await waitFor('health is good again', () => isHealthy(service));
      await assertHealth(service);
    }
    const request = { url: world.target.url('/keyed'), idempotencyKey: 'keyed' };
    const { status, body } = await execute(free, request);
    assert.deepEqual([status, body.idempotentReplay], [200, false]);
    answers.push(body);
    await assertReplays(free, request, body);
    await assertReplays(free, knownRequest(), known);
    answers.push(assertDelivered(await send(charging, sample), sample));
    await paid.assertBooks([sample], { calls: 1, charges: 1 });
    const action = { url: world.target.url('/decided') };
    assert.equal((await post(`${free.url}/api/decide/webhook`, { action })).status, 200);
    for (const service of [free, charging]) {
      for (const executed of answers) await assertStands(service, executed);
      const { stats } = (await monitoring(service)).body;
      assert.deepEqual([stats.total, stats.running], [3 + REFUSED, 0]);
    }
    assert.deepEqual(
      ['/known', '/keyed', '/late'].map((path) => hitsOf(world, path)),
      [1, 1, 0],
    );
    assert.ok(cluster.eventStore);
    assert.equal(assertOneSetEach(cluster.eventStore), 3 + REFUSED);
    for (const service of [free, charging]) {
      const { code, stderr } = await service.stop();
      assert.deepEqual([code, stderr], [0, '']);
    }
  });
});
