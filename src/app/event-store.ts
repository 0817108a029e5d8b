// The log of EVENTSTORE_URL: its adapter is loaded only then, and a start waits a while for a server that is away.
import { setTimeout as sleep } from 'node:timers/promises';
import { ConfigError } from '#src/config.ts';
import type { EventLog } from '#src/ports/event-log.ts';
import type { Logger } from '#src/ports/logger.ts';

/** The server of EVENTSTORE_URL did not answer. Shows no part of the connection string: it may hold a password. */
export class NoEventStore extends Error {
  constructor() {
    super(
      'the event log of EVENTSTORE_URL does not answer, or lets nobody in with this user, password or CA (a line of the log says which): start again when it does',
    );
    this.name = 'NoEventStore';
  }
}

/** A supervisor starts log and service together; for a server that stays away it does better to see a failed start. */
const PATIENCE_MS = 30_000;
const LOOK_MS = 500;

/**
 * `patienceMs`: how long a server may be away before `NoEventStore`; `ending`: ends that wait, too. Throws `ConfigError`
 * for an unreadable string.
 */
export async function eventStoreLog(
  url: string,
  logger: Logger,
  patienceMs = PATIENCE_MS,
  ending?: AbortSignal,
): Promise<EventLog> {
  const { eventStoreDbEventLog, UnreadableConnectionString } = await import(
    '#src/adapters/event-log/eventstoredb/event-log.ts'
  );
  const log = open();
  for (const since = performance.now(); !(await log.health()).ok; await sleep(LOOK_MS)) {
    if (performance.now() - since < patienceMs && ending?.aborted !== true) continue;
    await log.close();
    throw new NoEventStore();
  }
  return log;

  function open(): EventLog {
    try {
      return eventStoreDbEventLog({ url, logger });
    } catch (error) {
      if (!(error instanceof UnreadableConnectionString)) throw error;
      throw new ConfigError([{ variable: 'EVENTSTORE_URL', problem: error.message }]);
    }
  }
}
