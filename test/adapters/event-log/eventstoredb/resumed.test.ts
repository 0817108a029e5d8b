// After an interruption the events that follow may be of a restored backup: a subscriber must know of it before them.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { untilKnown, withEventStore } from '#test/support/event-log-eventstoredb.ts';
import { follow, freshStream, newEvents } from '#test/support/event-log-fixtures.ts';
import { waitFor } from '#test/support/service.ts';

test(
  'eventstoredb: a subscription says that it was interrupted, before the next event',
  { timeout: 60_000 },
  () =>
    withEventStore(async ({ server, log }) => {
      const stream = freshStream();
      await log.append(stream, 'no_stream', newEvents(1));
      const follower = follow(log, { after: null });
      await follower.until(() => follower.messages.length === 2, 'event and caught_up');
      await server.stop();
      await waitFor('the outage is noticed', async () => !(await log.health()).ok);
      await server.start();
      await untilKnown(() => log.append(stream, 0n, newEvents(1)));
      await follower.until(() => follower.messages.at(-1)?.kind === 'event', 'the next event');
      const kinds = follower.messages.map((message) => message.kind);
      assert.deepEqual(kinds, ['event', 'caught_up', 'resumed', 'event']);
      await follower.stop();
    }),
);
