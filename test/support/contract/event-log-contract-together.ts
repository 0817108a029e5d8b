// The contract's part on appends that are stored together. A log that cannot says so.
import assert from 'node:assert/strict';
import { type EventLog, EventLogUnavailable, type NewEvent } from '#src/ports/event-log.ts';
import { freshStream, ids, newEvent, newEvents, wrongVersion } from './event-log-fixtures.ts';
import { type LogTest, type OpenedLog, withAgain } from './event-log-harness.ts';

type Together = NonNullable<EventLog['appendTogether']>;

const pair = (
  [a, b]: readonly [string, string],
  [first, second]: readonly [NewEvent[], NewEvent[]] = [newEvents(1), newEvents(2)],
) =>
  [
    { stream: a, expected: 'no_stream', events: first },
    { stream: b, expected: 'no_stream', events: second },
  ] as const;

const freshPair = () => [freshStream('paid'), freshStream('job')] as const;

export function togetherContract(logged: LogTest, can: boolean): void {
  if (!can) {
    logged('stores no appends together', async ({ log }) => assert.equal(log.appendTogether, null));
    return;
  }
  const together = (title: string, body: (appendTogether: Together, opened: OpenedLog) => Promise<void>) =>
    logged(title, (opened) => body(opened.log.appendTogether ?? assert.fail('it can'), opened));

  together(
    'appends that are stored together: in their order, without an event between',
    async (append, { log }) => {
      const [a, b] = freshPair();
      const [first, second] = [newEvents(1), newEvents(2)];
      const before = await log.head();
      const appended = await append(pair([a, b], [first, second]));
      assert.deepEqual(
        appended.map(({ nextRevision }) => nextRevision),
        [0n, 1n],
      );
      const stored = await log.readAll({ after: before, max: 10 });
      assert.deepEqual(ids(stored), ids([...first, ...second]));
      assert.deepEqual(
        stored.map(({ stream }) => stream),
        [a, b, b],
      );
      assert.equal(await log.head(), appended[1]?.position);
    },
  );

  for (const [which, taken] of [
    ['first', 0],
    ['second', 1],
  ] as const)
    together(
      `the ${which} of two is refused: neither is stored, and the error names it`,
      async (append, { log }) => {
        const names = freshPair();
        const theirs = newEvents(1);
        await log.append(names[taken], 'no_stream', theirs);
        await assert.rejects(append(pair(names)), wrongVersion(names[taken], 'no_stream', 0n));
        assert.deepEqual(ids(await log.readStream(names[taken])), ids(theirs));
        assert.deepEqual(await log.readStream(names[1 - taken] ?? ''), []);
      },
    );

  together(
    'a repeat with the same ids gets the first result, also behind later events',
    async (append, { log }) => {
      const names = freshPair();
      const call = pair(names);
      const first = await append(call);
      assert.deepEqual(await append(call), first);
      await log.append(names[1], 1n, newEvents(1));
      assert.deepEqual(await append(call), first);
      await assert.rejects(append(pair(names)), wrongVersion(names[0], 'no_stream', 0n));
      assert.equal((await log.readStream(names[1])).length, 3);
    },
  );

  together(
    '20 racers for one of two streams, on two handles: one winner, and nothing of the losers',
    (append, opened) =>
      withAgain(opened, async (other) => {
        const goal = freshStream('job');
        const own = Array.from({ length: 20 }, () => freshStream('paid'));
        const results = await Promise.allSettled(
          own.map((stream, n) => (n % 2 === 0 ? append : other.appendTogether)?.(pair([stream, goal]))),
        );
        const winners = own.filter((_, n) => results[n]?.status === 'fulfilled');
        assert.equal(winners.length, 1);
        for (const result of results)
          if (result.status === 'rejected') wrongVersion(goal, 'no_stream', 1n)(result.reason);
        for (const stream of own)
          assert.equal((await other.readStream(stream)).length, winners.includes(stream) ? 1 : 0);
        assert.equal((await opened.log.readStream(goal)).length, 2);
      }),
  );

  together('a refused one leaves those sent at the same time alone', async (append, { log }) => {
    const taken = freshStream('job');
    await log.append(taken, 'no_stream', newEvents(1));
    const [lost, good, alone] = [freshStream(), freshPair(), freshStream()];
    const results = await Promise.allSettled([
      append(pair([lost, taken])),
      append(pair(good)),
      log.append(alone, 'no_stream', newEvents(1)),
    ]);
    assert.deepEqual(
      results.map(({ status }) => status),
      ['rejected', 'fulfilled', 'fulfilled'],
    );
    assert.deepEqual(await log.readStream(lost), []);
    for (const [stream, count] of [
      [good[0], 1],
      [good[1], 2],
      [alone, 1],
    ] as const)
      assert.equal((await log.readStream(stream)).length, count);
  });

  together(
    'an event that JSON cannot hold fails both; a closed log is unavailable',
    async (append, { log }) => {
      const names = freshPair();
      const broken = { ...newEvent(), data: { amount: 1n } } as unknown as NewEvent;
      await assert.rejects(append(pair(names, [newEvents(1), [broken]])), TypeError);
      for (const stream of names) assert.deepEqual(await log.readStream(stream), []);
      await log.close();
      await assert.rejects(append(pair(names)), EventLogUnavailable);
    },
  );
}
