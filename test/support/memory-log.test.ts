import assert from 'node:assert/strict';
import { test } from 'node:test';
import { EventLogUnavailable, type NewEvent, WrongExpectedVersion } from '#src/ports/event-log.ts';
import { eventLogContract } from './event-log.contract.ts';
import { memoryLog } from './memory-log.ts';

eventLogContract('memory', {
  reopens: true,
  spoils: true,
  async open() {
    const log = memoryLog();
    return {
      log,
      again: async () => log.again(),
      spoil: async (event) => log.spoil(event),
      dispose: async () => undefined,
    };
  },
});

const event = (n: number): NewEvent => ({
  id: crypto.randomUUID(),
  type: 'Counted',
  data: { n },
  metadata: {},
});

test('memory log: the same ids at the same expectation succeed again and store nothing; other ids fail', async () => {
  const log = memoryLog();
  const mine = [event(1), event(2)];
  const first = await log.append('a-1', 'no_stream', mine);
  await log.append('a-1', first.nextRevision, [event(3)]);
  assert.deepEqual(await log.append('a-1', 'no_stream', mine), first);
  assert.equal(log.events.length, 3);
  const refused = (error: unknown) => error instanceof WrongExpectedVersion && error.actual === 2n;
  await assert.rejects(log.append('a-1', 'no_stream', [event(1), event(2)]), refused);
  await assert.rejects(log.append('a-1', 0n, [event(9)]), refused);
});

test('memory log: after a lost answer the events are stored, and the repeat returns the result', async () => {
  const log = memoryLog();
  const mine = [event(1)];
  log.loseNextAnswer();
  await assert.rejects(log.append('a-1', 'no_stream', mine), EventLogUnavailable);
  assert.equal((await log.append('a-1', 'no_stream', mine)).nextRevision, 0n);
  assert.equal(log.events.length, 1);
});

test('memory log: a subscription delivers stored events, caught_up once, resumed after an outage, and live events in order', async () => {
  const log = memoryLog();
  for (let n = 0; n < 3; n++) await log.append(`a-${n}`, 'no_stream', [event(n)]);
  const first = (await log.readAll({ after: null, max: 1 }))[0]?.position ?? null;
  const stop = new AbortController();
  const seen: unknown[] = [];
  for await (const message of log.subscribeAll({ after: first, signal: stop.signal })) {
    seen.push(message.kind === 'event' ? message.event.data.n : message.kind);
    if (message.kind === 'caught_up') {
      log.setAway(true);
      queueMicrotask(async () => {
        log.setAway(false);
        await log.append('b-1', 'no_stream', [event(3), event(4)]);
      });
    }
    if (seen.length === 6) stop.abort();
  }
  assert.deepEqual(seen, [1, 2, 'caught_up', 'resumed', 3, 4]);
});
