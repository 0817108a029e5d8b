// Faults that the contract cannot test for every log: a server that freezes, loses answers, stops and starts.
import assert from 'node:assert/strict';
import { connect, createServer, type Socket } from 'node:net';
import { test } from 'node:test';
import { eventStoreDbEventLog } from '#src/adapters/event-log/eventstoredb/event-log.ts';
import { type EventLog, EventLogUnavailable } from '#src/ports/event-log.ts';
import { loggerOver } from '#src/usecases/process/condition.ts';
import {
  assertGlobalOrder,
  assertWholeStreams,
  follow,
  freshId,
  freshStream,
  ids,
  newEvents,
  within,
  wrongVersion,
} from '#test/support/contract/event-log-fixtures.ts';
import { rootCause, untilKnown, withEventStore } from '#test/support/log/event-log-eventstoredb.ts';
import { startProgram } from '#test/support/log/event-log-process.ts';
import { waitFor } from '#test/support/process/service.ts';
import { collectingLogger } from '#test/support/world/fakes.ts';

/** For calls that must time out; others have the default limit, which only a hanging server reaches. */
const HASTY = { timeLimitMs: 150 };
const CLOSER = new URL('./event-log-eventstoredb-close.ts', import.meta.url).href;

const ACCEPTS_NOTHING = 'error: The event log accepts no events: no call is executed.';

/** Writers that repeat each call until its result is known, and the number of acknowledged events. */
async function write(log: EventLog, prefix: string, appends: number): Promise<number> {
  const counts = Array.from({ length: 16 }, async (_, w) => {
    let next: bigint | 'no_stream' = 'no_stream';
    for (let n = 0; n < appends; n++) {
      const events = newEvents(2);
      next = (await untilKnown(() => log.append(`${prefix}-${w}x`, next, events))).nextRevision;
    }
    return Number(next) + 1;
  });
  return (await Promise.all(counts)).reduce((sum, count) => sum + count, 0);
}

test('eventstoredb: every call on a frozen server ends within its time limit', () =>
  withEventStore(async ({ server, log, handle }) => {
    const stream = freshStream();
    await log.append(stream, 'no_stream', newEvents(1));
    const hasty = handle(HASTY);
    await untilKnown(() => hasty.head());
    server.faults.freeze();
    const calls: [string, () => Promise<unknown>][] = [
      ['append', () => hasty.append(stream, 0n, newEvents(1))],
      ['readStream', () => hasty.readStream(stream)],
      ['readAll', () => hasty.readAll({ after: null, max: 10 })],
      ['head', () => hasty.head()],
    ];
    for (const [name, call] of calls) await assert.rejects(within(call(), name), EventLogUnavailable, name);
    assert.deepEqual(await within(hasty.health(), 'health'), { ok: false, problem: 'unavailable' });
    await server.faults.thaw();
    await untilKnown(() => hasty.readStream(stream));
    await waitFor('health', async () => (await hasty.health()).ok);
    assert.equal(await log.head(), (await log.readStream(stream)).at(-1)?.position);
  }));

test('eventstoredb: an append on a frozen server is stored once, however late it is processed', () =>
  withEventStore(async ({ server, log, handle }) => {
    const stream = freshStream();
    await log.append(stream, 'no_stream', newEvents(1));
    const hasty = handle(HASTY);
    await untilKnown(() => hasty.head());
    server.faults.freeze();
    const mine = newEvents(2);
    await assert.rejects(hasty.append(stream, 0n, mine), EventLogUnavailable);
    await assert.rejects(hasty.append(stream, 0n, mine), EventLogUnavailable);
    await server.faults.thaw();
    const appended = await untilKnown(() => hasty.append(stream, 0n, mine));
    assert.equal(appended.nextRevision, 2n);
    assert.deepEqual(ids(await log.readStream(stream, { from: 1n })), ids(mine));
  }));

test('eventstoredb: after a lost answer and a restart of the server the repeat returns the result', () =>
  withEventStore(async ({ server, log, handle }) => {
    const stream = freshStream();
    const mine = newEvents(2);
    server.faults.loseAnswers(1);
    await assert.rejects(log.append(stream, 'no_stream', mine), EventLogUnavailable);
    await server.stop();
    await server.start();
    await handle().append(stream, 1n, newEvents(1));
    const { nextRevision, position } = await untilKnown(() => log.append(stream, 'no_stream', mine));
    const stored = await log.readStream(stream);
    assert.deepEqual([nextRevision, position], [1n, stored[1]?.position]);
    assert.equal(stored.length, 3);
  }));

test('eventstoredb: an append on which the server timed out is unavailable, and its repeat is stored', () =>
  withEventStore(async ({ server, log }) => {
    const stream = freshStream();
    const mine = newEvents(1);
    server.faults.refuseAppends(1);
    await assert.rejects(log.append(stream, 'no_stream', mine), EventLogUnavailable);
    assert.equal((await log.append(stream, 'no_stream', mine)).nextRevision, 0n);
  }));

test('eventstoredb: a restarted server is used again without a restart of this process', () =>
  withEventStore(async ({ server, log }) => {
    const stream = freshStream();
    await log.append(stream, 'no_stream', newEvents(1));
    const follower = follow(log, { after: null });
    await follower.until(() => follower.messages.length === 2, 'the event and caught_up');
    await server.stop();
    await assert.rejects(log.append(stream, 0n, newEvents(1)), EventLogUnavailable);
    await assert.rejects(log.head(), EventLogUnavailable);
    assert.deepEqual(await log.health(), { ok: false, problem: 'unavailable' });
    await server.start();
    const mine = newEvents(1);
    await within(
      untilKnown(() => log.append(stream, 0n, mine)),
      'an append',
    );
    await follower.until(() => follower.events().length === 2, 'the event after the outage');
    await follower.stop();
    assert.deepEqual(ids(follower.events()), ids(await log.readStream(stream)));
    const kinds = follower.messages.map(({ kind }) => kind);
    assert.deepEqual(kinds, ['event', 'caught_up', 'resumed', 'event']);
  }));

test('eventstoredb: 16 writers and a subscriber lose, repeat and reorder nothing while connections and subscriptions break', () =>
  withEventStore(
    async ({ server, log, handle }) => {
      const prefix = `broken${freshId()}`;
      const follower = follow(handle(), { after: null, prefix: `${prefix}-` });
      await follower.until(() => follower.messages.length > 0, 'caught_up');
      server.faults.dropSubscriptionsAfter(20);
      const writing = write(log, prefix, 40);
      const reached = (count: number) =>
        follower.until(() => follower.events().length >= count, `${count} events`);
      await reached(100);
      server.faults.drop();
      await reached(300);
      server.faults.dropSubscriptions();
      await reached(500);
      await server.stop();
      await server.start();
      await reached(800);
      server.faults.freeze();
      await server.faults.thaw();
      const total = await within(writing, 'the writers');
      await reached(total);
      await follower.stop();
      assert.equal(follower.events().length, 16 * 40 * 2);
      assertGlobalOrder(follower.events());
      assertWholeStreams(follower.events());
      assert.equal(follower.messages.filter(({ kind }) => kind === 'caught_up').length, 1);
    },
    { timeLimitMs: 1000 },
  ));

test('eventstoredb: a subscription on a frozen server continues when the server thaws', () =>
  withEventStore(async ({ server, log, handle }) => {
    const stream = freshStream();
    const follower = follow(handle(HASTY), { after: null });
    await follower.until(() => follower.messages.length > 0, 'caught_up');
    await log.append(stream, 'no_stream', newEvents(1));
    await follower.until(() => follower.events().length === 1, 'the first event');
    server.faults.freeze();
    const mine = newEvents(1);
    await assert.rejects(handle(HASTY).append(stream, 0n, mine), EventLogUnavailable);
    await server.faults.thaw();
    await untilKnown(() => log.append(stream, 0n, mine));
    await follower.until(() => follower.events().length === 2, 'the second event');
    await follower.stop();
    assert.deepEqual(ids(follower.events()), ids(await log.readStream(stream)));
  }));

test('eventstoredb: an aborted subscription returns while the server is frozen', () =>
  withEventStore(
    async ({ server, log, handle }) => {
      const follower = follow(log, { after: null });
      await follower.until(() => follower.messages.length > 0, 'caught_up');
      server.faults.freeze();
      // One waits for events, the other for its first page.
      const late = follow(handle(), { after: null });
      await follower.stop();
      await late.stop();
      await server.faults.thaw();
    },
    { timeLimitMs: 600_000 },
  ));

test('eventstoredb: close ends on a frozen server, and pending calls are rejected', () =>
  withEventStore(async ({ server, log, handle }) => {
    const stream = freshStream();
    await log.append(stream, 'no_stream', newEvents(1));
    const hasty = handle(HASTY);
    await untilKnown(() => hasty.head());
    server.faults.freeze();
    const handedOver = assert.rejects(hasty.append(stream, 0n, newEvents(1)), EventLogUnavailable);
    await within(hasty.close(), 'close');
    await handedOver;
    await server.faults.thaw();
  }));

test('eventstoredb: a closed log has no open connection', () =>
  withEventStore(async ({ server, log }) => {
    const follower = follow(log, { after: null });
    await follower.until(() => follower.messages.length > 0, 'caught_up');
    assert.equal(server.connections(), 1);
    await Promise.all([log.close(), assert.rejects(follower.ended, EventLogUnavailable)]);
    await waitFor('no connection', () => server.connections() === 0);
  }));

test('eventstoredb: a process that closed its log ends', () =>
  withEventStore(async ({ server }) => {
    const { ended, lines } = startProgram(CLOSER, [server.url]);
    const { code, stderr } = await within(ended, 'the end of the process');
    assert.deepEqual([code, [...lines]], [0, ['closed']], stderr);
  }));

test('eventstoredb: an outage is logged once, and so is its end', async () => {
  const logged: string[] = [];
  const record = (message: string) => logged.push(message);
  await withEventStore(
    async ({ server, log }) => {
      await log.head();
      await server.stop();
      for (let n = 0; n < 3; n++) await assert.rejects(log.head(), EventLogUnavailable);
      await server.start();
      await untilKnown(() => log.head());
      await assert.rejects(log.append(freshStream(), 3n, newEvents(1)));
      assert.deepEqual(logged, [
        'The event log does not answer: no call is executed.',
        'the event log accepts events again',
      ]);
    },
    { logger: loggerOver({ info: record, warn: record, error: record, bug: record }, { now: () => 0 }) },
  );
});

test('eventstoredb: a server that refuses appends is logged once with the cause, and so is its end', async () => {
  const logger = collectingLogger();
  const lines = () => logger.lines.map(({ level, message }) => `${level}: ${message}`);
  await withEventStore(
    async ({ server, log }) => {
      const stream = freshStream();
      server.faults.refuseAppends(1000);
      for (let n = 0; n < 3; n++) {
        await assert.rejects(log.append(stream, 'no_stream', newEvents(1)), EventLogUnavailable);
        assert.deepEqual(await log.health(), { ok: false, problem: 'not_writable' });
      }
      assert.deepEqual(lines(), [ACCEPTS_NOTHING]);
      assert.equal(rootCause(logger.lines[0]), 'timeout');
      server.faults.refuseAppends(0);
      await log.append(stream, 'no_stream', newEvents(1));
      assert.deepEqual(await log.health(), { ok: true });
      assert.deepEqual(lines(), [ACCEPTS_NOTHING, 'info: the event log accepts events again']);
    },
    { logger },
  );
});

test('eventstoredb: a dropped subscription is logged once, as such, and not as an outage', async () => {
  const lines: string[] = [];
  const write = (message: string) => lines.push(message);
  await withEventStore(
    async ({ server, log }) => {
      const stream = freshStream();
      const follower = follow(log, { after: null });
      await follower.until(() => follower.messages.length > 0, 'caught_up');
      await waitFor('the subscription', () => server.subscriptions() === 1);
      for (let n = 0; n < 3; n++) {
        server.faults.dropSubscriptions();
        await log.append(stream, n === 0 ? 'no_stream' : BigInt(n - 1), newEvents(1));
        await follower.until(() => follower.events().length === n + 1, 'the next event');
      }
      await follower.stop();
      assert.deepEqual(lines, ['the event log dropped the subscription; it resumes from its last position']);
    },
    { logger: loggerOver({ info: write, warn: write, error: write, bug: write }, { now: () => 0 }) },
  );
});

test('eventstoredb: the server excludes its own events from a live subscription', () =>
  withEventStore(async ({ server, log }) => {
    const follower = follow(log, { after: null });
    await follower.until(() => follower.messages.length > 0, 'caught_up');
    await waitFor('the subscription', () => server.subscriptions() === 1);
    server.faults.dropSubscriptionsAfter(3);
    server.writeSystemEvents(200);
    await log.append(freshStream(), 'no_stream', newEvents(1));
    await follower.until(() => follower.events().length === 1, 'the event');
    assert.equal(server.subscriptions(), 1);
    await follower.stop();
  }));

test('eventstoredb: 20 concurrent appends on 4 handles at no_stream while answers are lost: one succeeds', () =>
  withEventStore(async ({ server, handle }) => {
    const stream = freshStream('claim');
    const logs = [handle(), handle(), handle(), handle()];
    server.faults.loseAnswers(2);
    const results = await Promise.allSettled(
      Array.from({ length: 20 }, (_, n) => {
        const mine = newEvents(1);
        return untilKnown(async () => logs[n % 4]?.append(stream, 'no_stream', mine));
      }),
    );
    const lost = results.flatMap((result) => (result.status === 'rejected' ? [result.reason] : []));
    assert.equal(lost.length, 19);
    for (const error of lost) wrongVersion(stream, 'no_stream', 0n)(error);
    assert.equal((await logs[0]?.readStream(stream))?.length, 1);
  }));

test('eventstoredb: channels of hanging connections are closed', () =>
  withEventStore(async ({ server, handle }) => {
    const log = handle(HASTY);
    await untilKnown(() => log.head());
    server.faults.freeze();
    for (let n = 0; n < 8; n++) await assert.rejects(log.head(), EventLogUnavailable);
    await server.faults.thaw();
    await untilKnown(() => log.head());
    await waitFor('a single connection', () => server.connections() === 1);
  }));

test('eventstoredb: an open connection that hangs is replaced', () =>
  withEventStore(async ({ server, log }) => {
    const relay = await startRelay(server.port);
    const url = `esdb://127.0.0.1:${relay.port}?tls=false`;
    const behind = eventStoreDbEventLog({ url, ...HASTY });
    const follower = follow(behind, { after: null });
    await follower.until(() => follower.messages.length > 0, 'caught_up');
    const stream = freshStream();
    const first = newEvents(1);
    await untilKnown(() => behind.append(stream, 'no_stream', first));
    await follower.until(() => follower.events().length === 1, 'the first event');
    relay.muteAll();
    const mine = newEvents(1);
    await within(
      untilKnown(() => behind.append(stream, 0n, mine)),
      'an append by another connection',
    );
    await log.append(stream, 1n, newEvents(1));
    await follower.until(() => follower.events().length === 3, 'what others appended meanwhile');
    await follower.stop();
    assert.deepEqual(ids(follower.events()), ids(await log.readStream(stream)));
    await behind.close();
    relay.end();
  }));

/** Forwards bytes until `muteAll`: from then on the existing connections stay open and forward nothing. */
async function startRelay(port: number) {
  const sockets: Socket[] = [];
  const relay = createServer((client) => {
    const inner = connect(port, '127.0.0.1');
    sockets.push(client, inner);
    for (const socket of [client, inner]) socket.on('error', () => {});
    client.pipe(inner);
    inner.pipe(client);
  });
  await new Promise<void>((resolve) => {
    relay.listen(0, '127.0.0.1', resolve);
  });
  const address = relay.address();
  return {
    port: typeof address === 'object' ? address?.port : 0,
    muteAll() {
      for (const socket of sockets) socket.unpipe().pause();
    },
    end() {
      for (const socket of sockets) socket.destroy();
      relay.close();
    },
  };
}
