import assert from 'node:assert/strict';
import { test } from 'node:test';
import { eventStoreLog, NoEventStore } from '#src/app/stores.ts';
import { rootCause } from '#test/support/log/event-log-eventstoredb.ts';
import { startEventStoreServer } from '#test/support/log/eventstore-server.ts';
import { makeTestCa } from '#test/support/process/test-ca.ts';
import { collectingLogger } from '#test/support/world/fakes.ts';

test('an event store that refuses the password ends the start, and the log states it', async () => {
  const server = await startEventStoreServer({
    tls: makeTestCa(),
    credentials: { username: 'relay', password: 'right' },
  });
  const logger = collectingLogger();
  try {
    await assert.rejects(eventStoreLog(server.url.replace(':right@', ':wrong@'), logger, 0), NoEventStore);
  } finally {
    await server.end();
  }
  assert.deepEqual(
    logger.lines.map((line) => [line.level, line.message, rootCause(line)]),
    [['error', 'the event log of EVENTSTORE_URL cannot be read', 'access-denied']],
  );
});
