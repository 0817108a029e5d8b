// The contract's part on repeats: repeated calls, similar calls, and invalid calls.
import assert from 'node:assert/strict';
import type { ExpectedRevision, NewEvent } from '#src/ports/event-log.ts';
import { freshStream, ids, newEvent, newEvents, wrongVersion } from './event-log-fixtures.ts';
import type { LogTest } from './event-log-harness.ts';

export function repeatContract(logged: LogTest): void {
  logged(
    'the repeat of a call gets the first answer and stores nothing, also after later appends',
    async ({ log }) => {
      const stream = freshStream();
      const mine = newEvents(2);
      const first = await log.append(stream, 'no_stream', mine);
      assert.deepEqual(await log.append(stream, 'no_stream', mine), first);
      const later = newEvents(2);
      const second = await log.append(stream, 1n, later);
      await log.append(stream, 3n, newEvents(1));
      assert.deepEqual(await log.append(stream, 'no_stream', mine), first);
      assert.deepEqual(await log.append(stream, 1n, later), second);
      assert.equal((await log.readStream(stream)).length, 5);
    },
  );

  logged(
    'a repeat that shares only some events with the first call fails and stores nothing',
    async ({ log }) => {
      const stream = freshStream();
      const [a, b] = [newEvent(), newEvent()];
      await log.append(stream, 'no_stream', [a, b]);
      const overlaps: [ExpectedRevision, NewEvent[]][] = [
        ['no_stream', [a, newEvent()]],
        ['no_stream', [newEvent(), b]],
        ['no_stream', [b, a]],
        ['no_stream', [a, b, newEvent()]],
        [0n, [newEvent(), newEvent()]],
      ];
      for (const [expected, events] of overlaps) {
        await assert.rejects(log.append(stream, expected, events), wrongVersion(stream, expected, 1n));
      }
      assert.deepEqual(ids(await log.readStream(stream)), ids([a, b]));
    },
  );

  logged('ids are remembered per stream: another stream may hold the same ones', async ({ log }) => {
    const mine = newEvents(2);
    for (const stream of [freshStream(), freshStream()]) {
      await log.append(stream, 'no_stream', mine);
      assert.deepEqual(ids(await log.readStream(stream)), ids(mine));
    }
  });
}
