// The event log on EventStoreDB 23.10, through the package's client. It needs neither projections nor persistent
// subscriptions on the server. The server's own events (`$`) and events that are not JSON are skipped.
import { StreamDeletedError, WrongExpectedVersionError } from '@eventstore/db-client';
import { EventLogUnavailable, WrongExpectedVersion } from '#src/ports/event-log.ts';
import type { ScannedLog } from '#src/ports/event-scan.ts';
import type { Logger } from '#src/ports/logger.ts';
import { knownDamage } from '../known-damage.ts';
import { eventStoreConnection, LEADER } from './connection.ts';
import { eventStorePosition, eventToAppend } from './events.ts';
import { eventStoreHealth, probeProblem } from './health.ts';
import { eventStoreReader } from './read.ts';
import { eventStoreSubscriptions } from './subscribe.ts';
import { eventStoreSettings } from './url.ts';

export { UnreadableConnectionString } from './url.ts';

export type EventStoreDbEventLogOptions = {
  /** As `eventStoreSettings` reads it. */
  readonly url: string;
  /** ms without an answer after which a call throws `EventLogUnavailable`. */
  readonly timeLimitMs?: number;
  /** Logs outages, their ends, and dropped subscriptions. */
  readonly logger?: Logger;
};

/** Connects with the first call. Throws `UnreadableConnectionString`. */
export function eventStoreDbEventLog({
  url,
  timeLimitMs = 5000,
  logger,
}: EventStoreDbEventLogOptions): ScannedLog {
  // A read that fails is no proof either: the next check of the health probes.
  const failed = (cause: EventLogUnavailable) => health.failed(cause);
  const connection = eventStoreConnection(eventStoreSettings(url), { timeLimitMs, failed, logger });
  const damage = knownDamage(logger);
  const { readStream, readAll, scan, head, ...reader } = eventStoreReader(connection, damage);
  const health = eventStoreHealth(connection, reader, logger);

  return {
    async append(stream, expected, given) {
      const events = given.map(eventToAppend);
      // The server drops an append that it has not begun by the deadline. One that it has begun may be stored later.
      const options = { ...LEADER, expectedRevision: expected, deadline: timeLimitMs };
      const { nextExpectedRevision: nextRevision, position } = await connection
        .call((client) => client.appendToStream(stream, events, options))
        .catch((error: unknown) => {
          if (error instanceof StreamDeletedError) throw new WrongExpectedVersion(stream, expected, null);
          if (!(error instanceof WrongExpectedVersionError)) throw error;
          const { actualVersion: actual } = error;
          throw new WrongExpectedVersion(stream, expected, typeof actual === 'bigint' ? actual : null);
        });
      health.worked();
      if (position !== undefined) return { nextRevision, position: eventStorePosition(position) };
      throw new EventLogUnavailable({ cause: new Error('the stream of the repeated append was deleted') });
    },
    appendTogether: null,
    readStream,
    readAll,
    subscribeAll: eventStoreSubscriptions(connection, { ...reader, head }, logger),
    head,
    lastPosition: head,
    scan,
    checkFiles: async () => null,
    serverVersion: () => connection.call((client) => client.version()),
    async health() {
      if (connection.closing.aborted) return { ok: false, problem: 'unavailable' };
      const failure = await health.check();
      return damage.health(failure && probeProblem(failure.cause));
    },
    close: connection.close,
  };
}
