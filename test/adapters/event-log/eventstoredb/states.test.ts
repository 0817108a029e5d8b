// Other content of a server (its own events, those of other applications, deleted streams), access, and clusters.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  binaryEvent,
  EventStoreDBClient,
  jsonEvent,
  MaxAppendSizeExceededError,
} from '@eventstore/db-client';
import { StreamsService } from '@eventstore/db-client/generated/streams_grpc_pb.js';
import {
  Metadata,
  Server,
  ServerCredentials,
  type ServerWritableStream,
  type sendUnaryData,
  status,
} from '@grpc/grpc-js';
import { eventStoreDbEventLog } from '#src/adapters/event-log/eventstoredb/event-log.ts';
import type { ServerEvent } from '#src/adapters/event-log/eventstoredb/events.ts';
import { headSearch } from '#src/adapters/event-log/eventstoredb/read.ts';
import { EventLogUnavailable } from '#src/ports/event-log.ts';
import {
  follow,
  freshStream,
  ids,
  newEvent,
  newEvents,
  wrongVersion,
} from '#test/support/contract/event-log-fixtures.ts';
import {
  rootCause,
  type ServerBench,
  untilKnown,
  withEventStore,
} from '#test/support/log/event-log-eventstoredb.ts';
import { makeTestCa } from '#test/support/process/test-ca.ts';
import { collectingLogger } from '#test/support/world/fakes.ts';

/** Another application of the same server, with the stock client. */
async function withForeigner(
  { server }: ServerBench,
  body: (client: EventStoreDBClient) => Promise<unknown>,
): Promise<void> {
  const client = EventStoreDBClient.connectionString(server.url);
  try {
    await body(client);
  } finally {
    await client.dispose();
  }
}

test('eventstoredb: a log with only the server’s own events is empty', () =>
  withEventStore(async ({ server, log }) => {
    server.writeSystemEvents(50);
    assert.equal(await log.head(), null);
    assert.deepEqual(await log.readAll({ after: null, max: 10 }), []);
    const follower = follow(log, { after: null });
    await follower.until(() => follower.messages.length > 0, 'caught_up');
    await follower.stop();
    assert.deepEqual(follower.messages, [{ kind: 'caught_up' }]);
  }));

test('eventstoredb: the head is the last event of a subscriber, before many of the server’s own', () =>
  withEventStore(async ({ server, log, handle }) => {
    const stream = freshStream();
    server.writeSystemEvents(3);
    await log.append(stream, 'no_stream', newEvents(3));
    server.writeSystemEvents(700);
    const { position } = await log.append(stream, 2n, newEvents(1));
    for (const more of [0, 2, 600, 0]) {
      server.writeSystemEvents(more);
      const heads = await Promise.all([log.head(), log.head(), handle().head()]);
      assert.deepEqual(heads, [position, position, position]);
    }
    const follower = follow(log, { after: null });
    await follower.until(() => follower.messages.at(-1)?.kind === 'caught_up', 'caught_up');
    await follower.stop();
    assert.equal(follower.events().at(-1)?.position, position);
    assert.deepEqual(await log.readAll({ after: null, max: 9 }), follower.events());
    assert.deepEqual(ids(await log.readAll({ after: null, max: 2 })), ids(follower.events().slice(0, 2)));
    const next = await log.append(stream, 3n, newEvents(1));
    assert.equal(await log.head(), next.position);
  }));

test('eventstoredb: a part of the log that was searched for the head is not searched again', async () => {
  const log: ServerEvent[] = [];
  const put = (count: number, shown: boolean) => {
    for (let n = 0; n < count; n++) {
      const position = String(log.length).padStart(6, '0');
      const [recorded] = shown ? [{ ...newEvent(), stream: 's', revision: 0n, position, created: '' }] : [];
      log.push({ position, event: recorded ?? null, damage: null });
    }
  };
  let read = 0;
  const head = headSearch(async (from, count) => {
    const before = log.filter(({ position }) => from === null || position < from);
    const page = before.reverse().slice(0, count);
    read += page.length;
    return page;
  });
  put(1, true);
  put(5000, false);
  assert.equal(await head(), '000000');
  assert.ok(read >= 5000);
  read = 0;
  put(1000, false);
  assert.deepEqual([await head(), await head(), await head()], ['000000', '000000', '000000']);
  assert.ok(read < 2000, `${read} events read again`);
  put(1, true);
  put(2, false);
  assert.equal(await head(), '006001');
  put(1000, false);
  assert.equal(await head(), '006001');
  // After a restore or with a new database the searched part is invalid.
  log.length = 600;
  assert.equal(await head(), '000000');
  log.length = 0;
  assert.equal(await head(), null);
  put(1, true);
  put(1, false);
  assert.equal(await head(), '000000');
});

test('eventstoredb: events that are not JSON objects, and system streams, are not part of the log', () =>
  withEventStore(async (bench) => {
    const { log } = bench;
    const stream = freshStream();
    const mine = newEvent();
    await log.append(stream, 'no_stream', [mine]);
    await withForeigner(bench, async (client) => {
      await client.appendToStream(stream, binaryEvent({ type: 'Bytes', data: Buffer.from('{}') }));
      await client.appendToStream(stream, jsonEvent({ type: 'Text', data: 'text' }));
      await client.appendToStream('$settings', jsonEvent({ type: 'NotOurs', data: {} }));
    });
    const after = newEvent();
    const { position } = await log.append(stream, 2n, [after]);
    assert.deepEqual(ids(await log.readStream(stream)), ids([mine, after]));
    assert.deepEqual(ids(await log.readStream(stream, { direction: 'backwards' })), ids([after, mine]));
    assert.deepEqual(ids(await log.readAll({ after: null, max: 10 })), ids([mine, after]));
    await withForeigner(bench, (client) =>
      client.appendToStream(stream, binaryEvent({ type: 'Bytes', data: Buffer.from([1]) })),
    );
    assert.equal(await log.head(), position);
    const foreign = freshStream();
    await withForeigner(bench, (client) =>
      client.appendToStream(foreign, binaryEvent({ type: 'Bytes', data: Buffer.from('{}') })),
    );
    await log.append(foreign, 0n, [newEvent()]);
    assert.equal((await log.readStream(foreign, { direction: 'backwards', max: 2 })).length, 1);
  }));

test('eventstoredb: the next revision counts events that are not part of the log', () =>
  withEventStore(async (bench) => {
    const { log } = bench;
    const stream = freshStream();
    const bytes = () => binaryEvent({ type: 'Bytes', data: Buffer.from([1]) });
    await withForeigner(bench, (client) => client.appendToStream(stream, [bytes(), bytes()]));
    const mine = newEvents(1);
    const appended = await log.append(stream, 1n, mine);
    assert.equal(appended.nextRevision, 2n);
    await withForeigner(bench, (client) => client.appendToStream(stream, bytes()));
    assert.deepEqual(await log.append(stream, 1n, mine), appended);
  }));

test('eventstoredb: a deleted stream is empty and accepts new events', () =>
  withEventStore(async (bench) => {
    const { log } = bench;
    const stream = freshStream();
    await log.append(stream, 'no_stream', newEvents(2));
    await withForeigner(bench, (client) => client.deleteStream(stream));
    assert.deepEqual(await log.readStream(stream), []);
    assert.deepEqual(await log.readStream(stream, { direction: 'backwards' }), []);
    const mine = newEvents(1);
    assert.equal((await log.append(stream, 'no_stream', mine)).nextRevision, 2n);
    assert.deepEqual(ids(await log.readStream(stream)), ids(mine));
  }));

test('eventstoredb: a tombstoned stream is empty and accepts no events', () =>
  withEventStore(async (bench) => {
    const { log } = bench;
    const stream = freshStream();
    await log.append(stream, 'no_stream', newEvents(2));
    await withForeigner(bench, (client) => client.tombstoneStream(stream));
    assert.deepEqual(await log.readStream(stream), []);
    for (const expected of ['no_stream', 1n] as const) {
      await assert.rejects(log.append(stream, expected, newEvents(1)), wrongVersion(stream, expected, null));
    }
  }));

test('eventstoredb: events that are too large for the server are refused, and not as an outage', () =>
  withEventStore(async ({ log }) => {
    const stream = freshStream();
    const large = newEvent('Large', { text: 'x'.repeat(2 ** 20) });
    await assert.rejects(log.append(stream, 'no_stream', [large]), MaxAppendSizeExceededError);
    assert.deepEqual(await log.readStream(stream), []);
  }));

test('eventstoredb: text that is not a position of this log is refused', () =>
  withEventStore(async ({ log }) => {
    await assert.rejects(log.readAll({ after: '7', max: 1 }), RangeError);
    assert.throws(() => log.subscribeAll({ after: '7', signal: new AbortController().signal }), RangeError);
  }));

test('eventstoredb: over TLS only the client with the right password is admitted; another one is logged with the reason', () => {
  const credentials = { username: 'admin', password: 'p@ss:w/rd' };
  return withEventStore(
    async ({ server, log }) => {
      assert.equal((await log.append(freshStream(), 'no_stream', newEvents(1))).nextRevision, 0n);
      assert.deepEqual(await log.health(), { ok: true });
      const { port } = server;
      const [, ca = ''] = server.url.split('tlsCAFile=');
      const [refused, silent] = ['does not answer', 'does not answer'];
      for (const [url, message, cause] of [
        [`esdb://admin:wrong@localhost:${port}?tlsCAFile=${ca}`, refused, 'access-denied'],
        [`esdb://localhost:${port}?tlsCAFile=${ca}`, refused, 'access-denied'],
        [server.url.replace(/\?.*/, ''), silent, 'unavailable'],
        [`${server.url.replace(/\?.*/, '')}?tls=false`, silent, 'unavailable'],
      ] as const) {
        const logger = collectingLogger();
        const stranger = eventStoreDbEventLog({ url, logger });
        for (let n = 0; n < 2; n++) {
          await assert.rejects(
            stranger.append(freshStream(), 'no_stream', newEvents(1)),
            EventLogUnavailable,
          );
          assert.deepEqual(await stranger.health(), { ok: false, problem: 'unavailable' });
        }
        await stranger.close();
        assert.deepEqual(
          logger.lines.map((line) => [line.message, rootCause(line)]),
          [[`The event log ${message}: no call is executed.`, cause]],
        );
      }
      assert.equal(server.appends(), 1);
    },
    {},
    { tls: makeTestCa(), credentials },
  );
});

test('eventstoredb: a cluster’s leader is found through any of its hosts', () =>
  withEventStore(async ({ server }) => {
    for (const url of [
      `esdb+discover://127.0.0.1:${server.port}?tls=false`,
      `esdb://127.0.0.1:1,127.0.0.1:${server.port}?tls=false`,
    ]) {
      const log = eventStoreDbEventLog({ url });
      assert.equal((await log.append(freshStream(), 'no_stream', newEvents(1))).nextRevision, 0n);
      await server.stop();
      await assert.rejects(log.head(), EventLogUnavailable);
      await server.start();
      assert.ok((await log.head()) !== null);
      await log.close();
    }
  }));

test('eventstoredb: the leader that a node names is used, and the configured host again once that leader is stopped', () =>
  withEventStore(async ({ server }) => {
    const follower = await startFollowerOf(server.port);
    const log = eventStoreDbEventLog({ url: `esdb://127.0.0.1:${follower.port}?tls=false` });
    const mine = newEvents(1);
    const stream = freshStream();
    await assert.rejects(log.append(stream, 'no_stream', mine), EventLogUnavailable);
    assert.equal((await log.append(stream, 'no_stream', mine)).nextRevision, 0n);
    assert.equal(follower.calls(), 1);
    await server.stop();
    // A call that was cut keeps the connection; one that cannot connect ends it.
    while (follower.calls() < 2) await assert.rejects(log.readStream(stream), EventLogUnavailable);
    await server.start();
    assert.deepEqual(ids(await untilKnown(() => log.readStream(stream))), ids(mine));
    await log.close();
    follower.end();
  }));

/** A node that refuses every append and read, and names the leader. */
async function startFollowerOf(port: number) {
  let calls = 0;
  const metadata = new Metadata();
  metadata.set('exception', 'not-leader');
  metadata.set('leader-endpoint-host', '127.0.0.1');
  metadata.set('leader-endpoint-port', String(port));
  const refusal = () => {
    calls++;
    return { code: status.NOT_FOUND, details: 'Leader info available', metadata };
  };
  const grpc = new Server();
  const { append, read } = StreamsService;
  grpc.addService(
    { append, read },
    {
      append: (_call: unknown, reply: sendUnaryData<never>) => reply(refusal()),
      read: (call: ServerWritableStream<unknown, never>) => call.emit('error', refusal()),
    },
  );
  const own = await new Promise<number>((resolve, reject) => {
    grpc.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (error, bound) =>
      error === null ? resolve(bound) : reject(error),
    );
  });
  return { port: own, calls: () => calls, end: () => grpc.forceShutdown() };
}
