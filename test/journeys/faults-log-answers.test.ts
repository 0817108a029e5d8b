// The event log stores an event and its answer is lost; or it is unavailable while the target works. Stored events are
// found, sent requests are never sent again, and the caller gets its result, at once or by its idempotency key.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { setImmediate } from 'node:timers';
import { type EventType, STREAM } from '#src/domain/events.ts';
import {
  assertOneSetEach,
  assertReplays,
  attemptsIn,
  hitsOf,
  isHealthy,
} from '#test/support/given/fault-words.ts';
import type { EventStoreServer } from '#test/support/log/eventstore-server.ts';
import { needsPostgres } from '#test/support/log/postgres.ts';
import { type Cluster, makeCluster } from '#test/support/process/cluster.ts';
import { logLines, type Service, waitFor } from '#test/support/process/service.ts';
import type { Answer } from '#test/support/process/tls-target.ts';
import { assertStands } from '#test/support/world/service-stands.ts';
import { type Executed, execute } from '#test/support/world/service-world.ts';

const needs = needsPostgres();

/** Of a job with a key and two attempts, in order. */
const APPENDS: readonly (readonly EventType[])[] = [
  ['IdempotencyKeyClaimed'],
  ['JobStarted'],
  ['AttemptMade'],
  ['AttemptMade', 'JobCompleted', 'ReceiptSigned'],
];
const nextTurn = () => new Promise<void>((resolve) => setImmediate(resolve));
/** The repeated appends that were logged; those of the transparency log, which has its own schedule, are ignored. */
const unknownFates = (stdout: string) =>
  logLines(stdout)
    .filter(({ msg }) => msg === 'the event log did not confirm an append; it is repeated')
    .map(({ types }) => types)
    .filter((types) => !String(types).includes('CheckpointSigned'));

describe('answers of the log are lost', needs, () => {
  let cluster: Cluster;
  let eventStore: EventStoreServer;
  let service: Service;
  let jobs = 0;

  before(async () => {
    cluster = await makeCluster('eventstoredb+postgres');
    assert.ok(cluster.eventStore);
    eventStore = cluster.eventStore;
    service = await cluster.start();
  });
  after(() => cluster?.end());

  /** One execution left one set of events, which a repeat replays. */
  async function assertOnce(request: { readonly url: string }, body: Executed, hits: number): Promise<void> {
    assert.equal(hitsOf(cluster.world, new URL(request.url).pathname), hits);
    await assertReplays(service, request, body);
    await waitFor('health is good', () => isHealthy(service));
    await assertStands(service, body);
    jobs += 1;
    assert.equal(assertOneSetEach(eventStore), jobs);
  }

  test('of every append: the answer is 200, one set of events, the target is asked no oftener; a repeat replays', async () => {
    const { target } = cluster.world;
    const from = eventStore.events.length;
    const stored = () =>
      eventStore.events
        .slice(from)
        .map(({ type }) => type)
        .filter((type) => type !== 'CheckpointSigned');
    target.answer(() => ({ status: hitsOf(cluster.world, '/lost') === 1 ? 503 : 200 }));
    const request = {
      url: target.url('/lost'),
      idempotencyKey: 'lost',
      retry: { attempts: 2, backoffMs: 500 },
    };
    let answered = false;
    // Armed for each append in the very turn in which the one before it was stored.
    const arming = (async () => {
      for (const step of APPENDS.keys()) {
        // All appends but the last hold one event.
        while (!answered && stored().length < step) await nextTurn();
        eventStore.faults.loseAnswers(1, STREAM.receiptLog);
      }
    })();
    const before = service.stdout().length;
    const { status, body } = await execute(service, request);
    answered = true;
    await arming;
    eventStore.faults.loseAnswers(0);
    assert.equal(status, 200, JSON.stringify(body));
    assert.deepEqual([body.job.attempts, body.idempotentReplay], [2, false]);
    assert.deepEqual(unknownFates(service.stdout().slice(before)), APPENDS);
    assert.deepEqual(stored(), APPENDS.flat());
    await assertOnce(request, body, 2);
  });

  for (const [title, first, attempts] of [
    ['while the target works: the answer waits until it is back', { status: 201 }, 1],
    ['between two attempts: the second waits for it', { status: 503 }, 2],
  ] as const)
    test(`the log stops ${title}, and each is sent once`, async () => {
      const { target } = cluster.world;
      const path = `/stopped-${first.status}`;
      const held = Promise.withResolvers<Answer>();
      target.answer(() => (hitsOf(cluster.world, path) === 1 ? held.promise : {}));
      const request = {
        url: target.url(path),
        idempotencyKey: path,
        retry: { attempts: 3, backoffMs: 0 },
      };
      const before = service.stdout().length;
      const call = execute(service, request);
      let answered = false;
      void call.finally(() => {
        answered = true;
      });
      await waitFor('the request is at the target', () => hitsOf(cluster.world, path) === 1);
      await eventStore.stop();
      held.resolve(first);
      await waitFor('the service has noticed', () => unknownFates(service.stdout().slice(before)).length > 0);
      assert.deepEqual([answered, hitsOf(cluster.world, path)], [false, 1]);
      await eventStore.start();
      const { status, body } = await call;
      assert.deepEqual([status, body.job.status, body.job.attempts], [200, 'succeeded', attempts]);
      assert.deepEqual(
        attemptsIn(body).map(([sent]) => sent),
        Array(attempts).fill('yes'),
      );
      await assertOnce(request, body, attempts);
    });

  test('it ends regularly', async () => {
    const { code, stderr } = await service.stop();
    assert.deepEqual([code, stderr], [0, '']);
  });
});
