// The contract's part on subscriptions: catch up, one caught_up, live, without gap or double, until aborted.
import assert from 'node:assert/strict';
import { type EventLog, EventLogUnavailable } from '#src/ports/event-log.ts';
import {
  assertGlobalOrder,
  assertWholeStreams,
  follow,
  freshId,
  freshStream,
  ids,
  newEvents,
  within,
} from './event-log-fixtures.ts';
import { type LogTest, withAgain } from './event-log-harness.ts';

const WRITERS = 16;
const APPENDS = 40;

/** 16 streams and one type of event, named by the prefix, each with its own writer; every third append holds two events. */
async function writeAll(logs: readonly EventLog[], prefix: string): Promise<number> {
  const counts = Array.from({ length: WRITERS }, async (_, w) => {
    const log = logs[w % logs.length];
    const stream = `${prefix}-${w}x`;
    let next = 'no_stream' as bigint | 'no_stream';
    let count = 0;
    for (let n = 0; n < APPENDS; n++) {
      const events = newEvents(n % 3 === 0 ? 2 : 1, prefix);
      count += events.length;
      next = (await log?.append(stream, next, events))?.nextRevision ?? 'no_stream';
    }
    return count;
  });
  return (await Promise.all(counts)).reduce((sum, count) => sum + count, 0);
}

export function subscribeContract(logged: LogTest): void {
  logged('a subscription delivers what stood there, one caught_up, then what comes', async ({ log }) => {
    const stream = freshStream();
    // The beginning if the log is new; on a shared server the events of others before it are not read.
    const after = await log.head();
    await log.append(stream, 'no_stream', newEvents(3));
    const follower = follow(log, { after, prefix: stream });
    const caughtUp = () => follower.messages.filter((message) => message.kind === 'caught_up').length;
    await follower.until(() => caughtUp() > 0, 'caught_up');
    assert.deepEqual(
      follower.messages.map((message) => message.kind),
      ['event', 'event', 'event', 'caught_up'],
    );
    await log.append(stream, 2n, newEvents(2));
    await follower.until(() => follower.events().length === 5, 'two live events');
    await log.append(stream, 4n, newEvents(1));
    await follower.until(() => follower.events().length === 6, 'one more live event');
    await follower.stop();
    assert.equal(caughtUp(), 1);
    assert.deepEqual(follower.events(), await log.readStream(stream));
  });

  logged('a subscription at the head begins with caught_up', async ({ log }) => {
    const stream = freshStream();
    const { position } = await log.append(stream, 'no_stream', newEvents(1));
    const follower = follow(log, { after: position, prefix: stream });
    await follower.until(() => follower.messages.length === 1, 'the first message');
    assert.equal(follower.messages[0]?.kind, 'caught_up');
    await log.append(stream, 0n, newEvents(1));
    await follower.until(() => follower.events().length === 1, 'the live event');
    await follower.stop();
    assert.equal(follower.events()[0]?.revision, 1n);
  });

  logged(
    'while 16 writers append, subscribers from before and from the middle miss and double nothing',
    async ({ log }) => {
      const prefix = `tail${freshId()}`;
      const after = await log.head();
      const early = follow(log, { after, prefix });
      await early.until(() => early.messages.length > 0, 'caught_up');
      const writing = writeAll([log], prefix);
      await early.until(() => early.events().length >= 100, 'the first events');
      const midway = follow(log, { after, prefix });
      const total = await within(writing, 'the writers');
      for (const follower of [early, midway]) {
        await follower.until(() => follower.events().length >= total, `${total} events`);
        await follower.stop();
        const events = follower.events();
        assert.equal(events.length, total);
        assertGlobalOrder(events);
        assertWholeStreams(events);
        assert.equal(follower.messages.filter((message) => message.kind === 'caught_up').length, 1);
      }
      assert.deepEqual(early.events(), await log.readAll({ after, max: total + 1, types: [prefix] }));
      assert.deepEqual(midway.events(), early.events());
    },
  );

  logged('a subscription on one handle sees the events of both, each once, in order', (opened) =>
    withAgain(opened, async (other) => {
      const prefix = `both${freshId()}`;
      const after = await opened.log.head();
      const followers = [opened.log, other].map((log) => follow(log, { after, prefix }));
      const total = await within(writeAll([opened.log, other], prefix), 'the writers');
      for (const follower of followers) {
        await follower.until(() => follower.events().length >= total, `${total} events`);
        await follower.stop();
        assert.equal(follower.events().length, total);
        assertGlobalOrder(follower.events());
        assertWholeStreams(follower.events());
      }
    }),
  );

  logged(
    'a subscriber that stops and comes back with its last position misses and doubles nothing',
    async ({ log }) => {
      const prefix = `again${freshId()}`;
      let after = await log.head();
      const writing = writeAll([log], prefix);
      const seen = [];
      for (const goal of [1, 50, 200, 400]) {
        const follower = follow(log, { after, prefix });
        await follower.until(() => seen.length + follower.events().length >= goal, `${goal} events`);
        await follower.stop();
        seen.push(...follower.events());
        after = seen.at(-1)?.position ?? null;
      }
      const total = await writing;
      const last = follow(log, { after, prefix });
      await last.until(() => seen.length + last.events().length >= total, `${total} events`);
      await last.stop();
      seen.push(...last.events());
      assert.equal(new Set(ids(seen)).size, total);
      assert.equal(seen.length, total);
      assertGlobalOrder(seen);
    },
  );

  logged('a slow subscriber loses nothing', async ({ log }) => {
    const prefix = `slow${freshId()}`;
    const after = await log.head();
    const each = () => new Promise<void>((resolve) => setImmediate(resolve));
    const follower = follow(log, { after, prefix, each });
    const total = await writeAll([log], prefix);
    await follower.until(() => follower.events().length >= total, `${total} events`);
    await follower.stop();
    assert.equal(follower.events().length, total);
    assertWholeStreams(follower.events());
  });

  logged(
    'an aborted subscription returns: before it began, while it waits, and between two events',
    async ({ log }) => {
      const stream = freshStream();
      const after = await log.head();
      await log.append(stream, 'no_stream', newEvents(5));
      const never = follow(
        { ...log, subscribeAll: (options) => log.subscribeAll({ ...options, signal: AbortSignal.abort() }) },
        { after, prefix: stream },
      );
      await within(never.ended, 'a subscription that was aborted before it began');
      assert.deepEqual(never.messages, []);

      const waiting = follow(log, { after, prefix: stream });
      await waiting.until(() => waiting.messages.at(-1)?.kind === 'caught_up', 'caught_up');
      await waiting.stop();
      assert.equal(waiting.events().length, 5);

      const abort = new AbortController();
      const seen = [];
      for await (const message of log.subscribeAll({ after, signal: abort.signal })) {
        if (message.kind === 'event' && message.event.stream === stream) seen.push(message);
        if (seen.length === 2) abort.abort();
      }
      assert.equal(seen.length, 2);
    },
  );

  logged('a consumer that breaks off leaves the log in order', async ({ log }) => {
    const stream = freshStream();
    const after = await log.head();
    await log.append(stream, 'no_stream', newEvents(2));
    const signal = new AbortController().signal;
    for await (const message of log.subscribeAll({ after, signal })) {
      assert.equal(message.kind, 'event');
      break;
    }
    await log.append(stream, 1n, newEvents(1));
  });

  logged('a closed log ends its subscriptions, and not in silence', async ({ log }) => {
    const after = await log.head();
    const follower = follow(log, { after, prefix: freshStream() });
    await follower.until(() => follower.messages.length > 0, 'caught_up');
    await log.close();
    await assert.rejects(within(follower.ended, 'the end'), EventLogUnavailable);
    const late = follow(log, { after });
    await assert.rejects(within(late.ended, 'the end'), EventLogUnavailable);
  });
}
