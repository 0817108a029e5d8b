// The contract's part on appending: expectations, repeats, races, atomicity.
import assert from 'node:assert/strict';
import { type EventLog, EventLogUnavailable, type NewEvent } from '#src/ports/event-log.ts';
import { freshStream, newEvent, newEvents, wrongVersion } from './event-log-fixtures.ts';
import { type LogTest, withAgain } from './event-log-harness.ts';

async function race(callers: readonly (() => Promise<unknown>)[]): Promise<{ won: number; lost: unknown[] }> {
  const results = await Promise.allSettled(callers.map((call) => call()));
  const lost = results.flatMap((result) => (result.status === 'rejected' ? [result.reason] : []));
  return { won: results.length - lost.length, lost };
}

/** One call per caller: equal data, an id of its own. */
const racers = (logs: readonly EventLog[], stream: string, count: number) =>
  Array.from({ length: count }, (_, i) => () => {
    const log = logs[i % logs.length];
    if (log === undefined) throw new Error('no log');
    return log.append(stream, 'no_stream', [newEvent('Claimed', { by: 'anyone' })]);
  });

export function appendContract(logged: LogTest): void {
  logged(
    'an append answers the revision of its last event and a position at or after each of its events',
    async ({ log }) => {
      const stream = freshStream();
      const first = await log.append(stream, 'no_stream', newEvents(3));
      const second = await log.append(stream, 2n, newEvents(1));
      assert.deepEqual([first.nextRevision, second.nextRevision], [2n, 3n]);
      const stored = await log.readStream(stream);
      for (const event of stored.slice(0, 3)) assert.ok(event.position <= first.position);
      assert.ok(first.position < (stored[3]?.position ?? ''));
      assert.ok(first.position < second.position);
    },
  );

  logged('no_stream and a revision each let the right appends in', async ({ log }) => {
    const stream = freshStream();
    await log.append(stream, 'no_stream', newEvents(1));
    await log.append(stream, 0n, newEvents(2));
    await log.append(stream, 2n, newEvents(1));
    assert.deepEqual(
      (await log.readStream(stream)).map((event) => event.revision),
      [0n, 1n, 2n, 3n],
    );
  });

  logged(
    'WrongExpectedVersion names the stream, the expectation and the actual revision',
    async ({ log }) => {
      const stream = freshStream();
      await assert.rejects(log.append(stream, 0n, newEvents(1)), wrongVersion(stream, 0n, null));
      await log.append(stream, 'no_stream', newEvents(2));
      await assert.rejects(
        log.append(stream, 'no_stream', newEvents(1)),
        wrongVersion(stream, 'no_stream', 1n),
      );
      await assert.rejects(log.append(stream, 0n, newEvents(1)), wrongVersion(stream, 0n, 1n));
      await assert.rejects(log.append(stream, 7n, newEvents(1)), wrongVersion(stream, 7n, 1n));
      assert.equal((await log.readStream(stream)).length, 2);
    },
  );

  logged('two callers with equal data at no_stream: exactly one wins', async ({ log }) => {
    const stream = freshStream('claim');
    const { won, lost } = await race(racers([log], stream, 2));
    assert.equal(won, 1);
    for (const error of lost) wrongVersion(stream, 'no_stream', 0n)(error);
    assert.equal((await log.readStream(stream)).length, 1);
  });

  logged('20 racers at no_stream: one winner and 19 times WrongExpectedVersion', async ({ log }) => {
    const stream = freshStream('claim');
    const { won, lost } = await race(racers([log], stream, 20));
    assert.deepEqual([won, lost.length], [1, 19]);
    for (const error of lost) wrongVersion(stream, 'no_stream', 0n)(error);
    assert.equal((await log.readStream(stream)).length, 1);
  });

  logged('20 racers on two handles of one storage: one winner', (opened) =>
    withAgain(opened, async (other) => {
      const stream = freshStream('claim');
      const { won, lost } = await race(racers([opened.log, other], stream, 20));
      assert.equal(won, 1);
      for (const error of lost) wrongVersion(stream, 'no_stream', 0n)(error);
      assert.equal((await other.readStream(stream)).length, 1);
    }),
  );

  logged('an append that fails leaves those sent at the same time alone', async ({ log }) => {
    const taken = freshStream();
    await log.append(taken, 'no_stream', newEvents(1));
    const good = Array.from({ length: 10 }, () => freshStream());
    const calls = good.flatMap((stream) => [
      () => log.append(stream, 'no_stream', newEvents(2)),
      () => log.append(taken, 'no_stream', newEvents(2)),
    ]);
    const { won, lost } = await race(calls);
    assert.deepEqual([won, lost.length], [10, 10]);
    for (const error of lost) wrongVersion(taken, 'no_stream', 0n)(error);
    for (const stream of good) assert.equal((await log.readStream(stream)).length, 2);
    assert.equal((await log.readStream(taken)).length, 1);
  });

  logged('an event that JSON cannot hold fails its own append, whole, and no other', async ({ log }) => {
    const [stream, neighbour] = [freshStream(), freshStream()];
    const broken = { ...newEvent(), data: { amount: 1n } } as unknown as NewEvent;
    const [bad, good] = await Promise.allSettled([
      log.append(stream, 'no_stream', [newEvent(), broken]),
      log.append(neighbour, 'no_stream', newEvents(1)),
    ]);
    assert.ok(bad.status === 'rejected' && bad.reason instanceof TypeError);
    assert.equal(good.status, 'fulfilled');
    assert.deepEqual(await log.readStream(stream), []);
  });

  logged('events are stored as they were when the call was made', async ({ log }) => {
    const stream = freshStream();
    const data = { n: 1 };
    const storing = log.append(stream, 'no_stream', [newEvent('Noted', data)]);
    data.n = 2;
    await storing;
    assert.deepEqual((await log.readStream(stream))[0]?.data, { n: 1 });
  });

  logged(
    'what was acknowledged is there after the log was closed and opened again, and its repeat succeeds',
    async (opened) => {
      const { log } = opened;
      const stream = freshStream();
      const mine = newEvents(3);
      const appended = await log.append(stream, 'no_stream', mine);
      const before = await log.readStream(stream);
      await log.close();
      await withAgain(opened, async (next) => {
        assert.deepEqual(await next.readStream(stream), before);
        assert.ok(((await next.head()) ?? '') >= appended.position);
        assert.deepEqual(await next.append(stream, 'no_stream', mine), appended);
      });
    },
  );

  logged('close finishes what was handed over; a closed log is unavailable', async ({ log }) => {
    const stream = freshStream();
    const handedOver = log.append(stream, 'no_stream', newEvents(1));
    const closed = log.close();
    await assert.rejects(log.append(freshStream(), 'no_stream', newEvents(1)), EventLogUnavailable);
    assert.equal((await handedOver).nextRevision, 0n);
    await closed;
    await log.close();
    await assert.rejects(log.append(stream, 'no_stream', newEvents(1)), EventLogUnavailable);
    await assert.rejects(log.readStream(stream), EventLogUnavailable);
    await assert.rejects(log.readAll({ after: null, max: 1 }), EventLogUnavailable);
    await assert.rejects(log.head(), EventLogUnavailable);
    assert.deepEqual(await log.health(), { ok: false, problem: 'unavailable' });
  });
}
