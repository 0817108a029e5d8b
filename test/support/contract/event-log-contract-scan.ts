// The contract's part on scans and damage: everything is listed, and no read passes a damaged event over.
import assert from 'node:assert/strict';
import type { Damage } from '#src/domain/damage.ts';
import { EventDamaged, type RecordedEvent } from '#src/ports/event-log.ts';
import type { EventScan } from '#src/ports/event-scan.ts';
import { freshStream, ids, newEvent, newEvents } from './event-log-fixtures.ts';
import type { LogTest } from './event-log-harness.ts';

/** All that scans in parts of `max` list after `after`. */
async function scanned(log: EventScan, after: string | null, max: number) {
  const events: RecordedEvent[] = [];
  const damaged: Damage[] = [];
  for (let from = after; ; ) {
    const { found, next, unindexed } = await log.scan({ after: from, max, index: true });
    assert.deepEqual(unindexed, []);
    for (const one of found) {
      if (one.kind === 'event') events.push(one.event);
      else damaged.push(one.damage);
    }
    if (next === null) return { events, damaged };
    from = next;
  }
}

const damageAt = (call: Promise<unknown>): Promise<Damage> =>
  call.then(
    () => assert.fail('nothing was thrown'),
    (error: unknown) => (error instanceof EventDamaged ? error.damage : assert.fail(String(error))),
  );

export function scanContract(logged: LogTest): void {
  logged('scans in parts of any size list what reads return', async ({ log }) => {
    const after = await log.head();
    for (let n = 0; n < 4; n++) await log.append(freshStream(), 'no_stream', newEvents(3));
    const all = await log.readAll({ after, max: 100 });
    assert.equal(await log.lastPosition(), await log.head());
    for (const max of [1, 2, 3, 12, 100])
      assert.deepEqual(await scanned(log, after, max), { events: all, damaged: [] }, `${max}`);
    assert.deepEqual(await scanned(log, await log.head(), 5), { events: [], damaged: [] });
  });

  logged(
    'a damaged event: reads and subscriptions name it and pass nothing over, scans continue behind it',
    async ({ log, spoil }) => {
      const [stream, other] = [freshStream(), freshStream()];
      const after = await log.head();
      const written = Array.from({ length: 3 }, () => newEvent('JobStarted', { text: 'as it was written' }));
      await log.append(stream, 'no_stream', written);
      await log.append(other, 'no_stream', newEvents(2));
      const all = await log.readAll({ after, max: 100 });
      const [first, lost = assert.fail()] = all;
      await spoil(lost);
      const place = { from: lost.position, to: lost.position, stream, revision: '1' };
      const expected: Damage = { ...place, problem: 'changed' };

      assert.deepEqual(await damageAt(log.readStream(stream)), expected);
      assert.deepEqual(await damageAt(log.readStream(stream, { from: 1n, max: 1 })), expected);
      assert.deepEqual(await damageAt(log.readStream(stream, { direction: 'backwards' })), expected);
      assert.deepEqual(ids(await log.readStream(stream, { from: 2n })), ids(written.slice(2)));
      assert.equal((await log.readStream(other)).length, 2);
      assert.deepEqual(await damageAt(log.readAll({ after, max: 100 })), expected);
      assert.deepEqual(ids(await log.readAll({ after, max: 1 })), ids([first ?? lost]));
      assert.deepEqual(await log.readAll({ after: lost.position, max: 100 }), all.slice(2));

      const received: RecordedEvent[] = [];
      const subscription = log.subscribeAll({ after, signal: new AbortController().signal });
      const reading = (async () => {
        for await (const message of subscription) if (message.kind === 'event') received.push(message.event);
      })();
      assert.deepEqual(await damageAt(reading), expected);
      assert.deepEqual(ids(received), ids(all.slice(0, 1)));

      assert.deepEqual(await scanned(log, after, 2), { events: all.toSpliced(1, 1), damaged: [expected] });
      await log.append(stream, 2n, newEvents(1));
      const { ok, damaged } = await log.health();
      assert.deepEqual([ok, damaged], [true, { count: 1, first: expected }]);
    },
    { spoils: true },
  );
}
