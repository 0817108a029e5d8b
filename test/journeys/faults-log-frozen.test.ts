// The event log's server accepts connections and does not answer. Callers get 503 in time, nothing is sent; appends that
// are stored late, when the server resumes, are handled correctly.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { type Cluster, makeCluster } from '#test/support/cluster.ts';
import type { EventStoreServer } from '#test/support/eventstore-server.ts';
import {
  assertAway,
  assertHealth,
  assertOneSetEach,
  assertReplays,
  hitsOf,
  isHealthy,
  jobOf,
  monitoring,
} from '#test/support/fault-words.ts';
import { needsAnvil } from '#test/support/local-payments.ts';
import { assertDelivered, assertSaid, type Sent, send } from '#test/support/paid-call.ts';
import { makePaidWorld, type PaidWorld, type Sample } from '#test/support/paid-world.ts';
import { needsPostgres } from '#test/support/postgres.ts';
import { type Service, waitFor } from '#test/support/service.ts';
import { assertJobVerifies, assertStands } from '#test/support/service-stands.ts';
import { type Answered, type ErrorBody, type Executed, execute, get } from '#test/support/service-world.ts';

const anvil = needsAnvil();
const postgres = needsPostgres();
const needs = { skip: anvil.skip || postgres.skip };

/** attempts × timeoutMs + 15 s, as in JobStarted. */
const LEASE_MS = 1000 + 15_000;
/** Far below the answer budget of 110 s: a read without an answer takes 5 s, an append 2 s. */
const TOLD_WITHIN_MS = 20_000;

type Answer = Answered<Executed & ErrorBody>;

describe('the log frozen before anything was sent', needs, () => {
  let cluster: Cluster;
  let eventStore: EventStoreServer;
  let paid: PaidWorld;
  /** One log and one PostgreSQL for both. */
  let free: Service;
  let charging: Service;
  let known: Executed;
  let sample: Sample;
  const claiming = () => ({
    url: cluster.world.target.url('/claim', 'slow.target.test'),
    idempotencyKey: 'claim',
  });
  let claimed: { readonly answer: Answer; readonly tookMs: number };
  let paidAway: Sent;
  /** Its start was sent to the log before. */
  let answeredAt: number;
  let tooLate: Answer;

  before(async () => {
    cluster = await makeCluster('eventstoredb+postgres');
    paid = await makePaidWorld();
    assert.ok(cluster.eventStore);
    eventStore = cluster.eventStore;
    const { DATABASE_URL = '', EVENTSTORE_URL = '', SIGNING_KEYS_FILE = '' } = cluster.env;
    free = await cluster.start();
    charging = await paid.start({ DATABASE_URL, EVENTSTORE_URL, SIGNING_KEYS_FILE });
    const { status, body } = await execute(free, { url: cluster.world.target.url('/known') });
    assert.equal(status, 200);
    known = body;
    // Projected before the event log freezes: the answer does not wait for the read models.
    assert.equal((await jobOf(free, known.job.id)).status, 200);
    const [first] = await paid.samples(charging, 'frozen', { count: 1 });
    assert.ok(first);
    sample = first;
    // Both have read the log and are held just before their first append.
    cluster.world.dns.set('slow.target.test', { addresses: ['127.0.0.1'], delayMs: 700 });
    const begun = performance.now();
    const call = execute(free, claiming());
    const opened = Promise.withResolvers<'pass'>();
    paid.proxy.rule(({ kind }) => (kind === 'verify' ? opened.promise : 'pass'));
    const paying = send(charging, sample);
    await waitFor('the key was looked up', () => cluster.world.dns.asked('slow.target.test') > 0);
    await waitFor('the payment is at the facilitator', () => paid.proxy.calls.length === 1);
    eventStore.faults.freeze();
    opened.resolve('pass');
    const starting = execute(free, { url: cluster.world.target.url('/too-late'), timeoutMs: 1000 });
    claimed = { answer: await call, tookMs: performance.now() - begun };
    paidAway = await paying;
    tooLate = await starting;
    answeredAt = performance.now();
  });
  after(async () => {
    await paid.end();
    await cluster?.end();
  });

  test('held at the append that claims its key: 503 in time, no job starts', () => {
    assertAway(claimed.answer, 'event_log_unavailable');
    assert.equal(claimed.answer.body.error.details, undefined);
    assert.ok(claimed.tookMs < TOLD_WITHIN_MS, `${claimed.tookMs} ms`);
  });

  test('held at the append that reserves its payment: 503, repeat with the same header; nothing is settled', () => {
    assertSaid(paidAway, 503, 'event_log_unavailable');
    assertAway(paidAway, 'event_log_unavailable');
    assert.match(
      paidAway.body.error.message,
      /nothing was sent so far\. Repeat with the same payment header/,
    );
    assert.deepEqual(paid.proxy.callsOf('settle', sample.payment.nonce), []);
  });

  test('new calls: 503 in time, with a key and without; known records are read, unknown ones are 503', async () => {
    const begun = performance.now();
    const { target } = cluster.world;
    const unknown = `job_${'0'.repeat(26)}`;
    await Promise.all([
      execute(free, { url: target.url('/keyed'), idempotencyKey: 'keyed' }).then((answer) =>
        assertAway(answer, 'event_log_unavailable'),
      ),
      send(charging, sample).then((answer) => assertAway(answer, 'event_log_unavailable')),
      jobOf(free, known.job.id).then(({ status, body }) =>
        assert.deepEqual([status, body.status], [200, 'succeeded']),
      ),
      get(`${free.url}/api/receipts/${known.receipt.id}`).then(({ status }) => assert.equal(status, 200)),
      jobOf(free, unknown).then((answer) => assertAway(answer, 'read_models_unavailable')),
      get(`${free.url}/api/verify/jobs/${known.job.id}`).then((answer) =>
        assertAway(answer, 'event_log_unavailable'),
      ),
    ]);
    const took = performance.now() - begun;
    assert.ok(took < TOLD_WITHIN_MS, `${took} ms`);
    // What worked is believed for 25 s.
    await waitFor('health names the log', async () => !(await isHealthy(free)));
    await assertHealth(free, 'eventLog');
  });

  test('a start that is recorded after its lease: reported to the caller, closed as not executed, never sent', async () => {
    assertAway(tooLate, 'event_log_unavailable');
    // Without a key no caller can repeat the call, so the job is not named.
    assert.match(tooLate.body.error.message, /nothing was sent, and nothing will be/);
    assert.equal(tooLate.body.error.details, undefined);
    await waitFor('its lease is over', () => performance.now() - answeredAt > LEASE_MS);
    await eventStore.faults.thaw();
    const id = await waitFor('the start has landed', () => {
      const started = eventStore.events.filter(({ type }) => type === 'JobStarted');
      const ids: string[] = started.map(({ data }) => JSON.parse(Buffer.from(data).toString()).jobId);
      return ids.find((jobId) => jobId !== known.job.id);
    });
    const job = await waitFor('the job is closed', async () => {
      const { status, body } = await jobOf(free, id);
      return status === 200 && body.receiptId !== null && body;
    });
    assert.deepEqual(
      [job.status, job.errorCategory, job.attemptLog.map(({ sent, errorCategory }) => [sent, errorCategory])],
      ['failed', 'not_executed', [['no', 'not_executed']]],
    );
    await assertJobVerifies(free, id);
    assert.equal(hitsOf(cluster.world, '/too-late'), 0);
  });

  test('a claim that is stored late: another request is 409; its own continues that job', async () => {
    const [claim] = await waitFor('the claim has landed', () => {
      const claims = eventStore.events.filter(({ type }) => type === 'IdempotencyKeyClaimed');
      return claims.length > 0 && claims;
    });
    const { jobId } = JSON.parse(Buffer.from(claim?.data ?? []).toString());
    assert.equal(hitsOf(cluster.world, '/claim'), 0);
    const other = await execute(free, { ...claiming(), body: 'another' });
    assert.deepEqual([other.status, other.body.error.code], [409, 'idempotency_conflict']);
    const { status, body } = await execute(free, claiming());
    assert.deepEqual([status, body.idempotentReplay, body.job.id], [200, false, jobId]);
    await assertReplays(free, claiming(), body);
    assert.equal(hitsOf(cluster.world, '/claim'), 1);
    await assertStands(free, body);
  });

  test('a reservation that is stored late: its header continues, served once, charged once', async () => {
    await waitFor('the reservation has landed', () =>
      eventStore.events.some(({ type }) => type === 'PaymentReserved'),
    );
    const sent = await waitFor(
      'the payment is served',
      async () => {
        const answer = await send(charging, sample);
        if (answer.status !== 409) return answer;
        assertSaid(answer, 409, 'idempotency_in_progress');
        return undefined;
      },
      { limitMs: 70_000, everyMs: 2500 },
    );
    const served = assertDelivered(sent, sample);
    await paid.assertBooks([sample], { calls: 1, charges: 1 });
    await assertStands(charging, served);
  });

  test('resumed: healthy without a restart, one set of events for each job, no job running', async () => {
    for (const service of [free, charging]) {
      await waitFor('health is good again', () => isHealthy(service));
      const { stats } = (await monitoring(service)).body;
      assert.deepEqual([stats.total, stats.running], [4, 0]);
      const { code, stderr } = await service.stop();
      assert.deepEqual([code, stderr], [0, '']);
    }
    assert.equal(assertOneSetEach(eventStore), 4);
    assert.equal(hitsOf(cluster.world, '/keyed'), 0);
  });
});
