// A cluster that freezes: the channel that went dumb is left while the next leader is still being looked for.
import assert from 'node:assert/strict';
import process from 'node:process';
import { test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { eventStoreConnection } from '#src/adapters/event-log/eventstoredb/connection.ts';
import { allRequest } from '#src/adapters/event-log/eventstoredb/messages.ts';
import { eventStoreSettings } from '#src/adapters/event-log/eventstoredb/url.ts';
import { EventLogUnavailable } from '#src/ports/event-log.ts';
import { untilKnown } from '#test/support/event-log-eventstoredb.ts';
import { startEventStoreServer } from '#test/support/eventstore-server.ts';

test('eventstoredb: calls that end on a frozen cluster while its leader is looked for leave no rejection to nobody', {
  timeout: 60_000,
}, async () => {
  const unhandled: unknown[] = [];
  const note = (reason: unknown) => unhandled.push(reason);
  process.on('unhandledRejection', note);
  const server = await startEventStoreServer();
  const settings = eventStoreSettings(`esdb+discover://127.0.0.1:${server.port}?tls=false`);
  const connection = eventStoreConnection(settings, { timeLimitMs: 2000 });
  const read = (limitMs?: number) => connection.read(allRequest('end', 'backwards', 1), () => {}, limitMs);
  try {
    await untilKnown(read);
    server.faults.freeze();
    const later = assert.rejects(read(400), EventLogUnavailable);
    // It leaves the channel; the next call looks for the leader, in vain, for a second.
    await assert.rejects(read(100), EventLogUnavailable);
    const looking = assert.rejects(read(), EventLogUnavailable);
    await later;
    await looking;
    await nextTurn();
    assert.deepEqual(unhandled, []);
    await server.faults.thaw();
    await untilKnown(read);
  } finally {
    process.off('unhandledRejection', note);
    await connection.close();
    await server.end();
  }
});
