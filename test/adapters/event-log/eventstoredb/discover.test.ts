// A cluster that freezes: the hanging channel is replaced while the next leader is being discovered.
import assert from 'node:assert/strict';
import process from 'node:process';
import { test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { EventLogUnavailable } from '#src/ports/event-log.ts';
import { freshStream, newEvents } from '#test/support/contract/event-log-fixtures.ts';
import { untilKnown, withEventStore } from '#test/support/log/event-log-eventstoredb.ts';

test('eventstoredb: calls that time out during the discovery of a frozen cluster leave no unhandled rejection', async () => {
  const unhandled: unknown[] = [];
  const note = (reason: unknown) => unhandled.push(reason);
  process.on('unhandledRejection', note);
  try {
    await withEventStore(async ({ server, handle }) => {
      const log = handle({ url: `esdb+discover://127.0.0.1:${server.port}?tls=false`, timeLimitMs: 400 });
      await untilKnown(() => log.head());
      server.faults.freeze();
      const first = [log.head(), log.append(freshStream(), 'no_stream', newEvents(1))];
      await Promise.all(first.map((call) => assert.rejects(call, EventLogUnavailable)));
      // These try to discover the leader, without success.
      const second = [log.head(), log.readStream(freshStream())];
      await Promise.all(second.map((call) => assert.rejects(call, EventLogUnavailable)));
      await nextTurn();
      await server.faults.thaw();
      await untilKnown(() => log.head());
    });
    await nextTurn();
    assert.deepEqual(unhandled, []);
  } finally {
    process.off('unhandledRejection', note);
  }
});
