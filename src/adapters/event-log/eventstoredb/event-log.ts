// The event log on a server: EventStoreDB 23.10 and what speaks its protocol, by way of gRPC. Nothing has to be
// switched on in it: no projections, no persistent subscriptions.
// Leaves to others: the port says what a log is; each eventstoredb-*.ts beside this file decides one part of how.

import { checkedAppend } from '#src/adapters/event-log/append-arguments.ts';
import { type EventLog, EventLogUnavailable, type RecordedEvent } from '#src/ports/event-log.ts';
import type { Logger } from '#src/ports/logger.ts';
import { eventStoreAppend } from './append.ts';
import { appendWatch } from './append-watch.ts';
import { eventStoreConnection } from './connection.ts';
import { headSearch } from './head.ts';
import { isPosition } from './messages.ts';
import { LAST_REVISION, logReader } from './read.ts';
import { eventStoreSubscription } from './subscribe.ts';
import { eventStoreSettings } from './url.ts';

export { UnreadableConnectionString } from './url.ts';

export type EventStoreDbEventLogOptions = {
  /**
   * `esdb://` or `kurrentdb://`, with `+discover` for a cluster, as the clients of the server take it:
   * `esdb://user:password@host:2113?tlsCAFile=ca.crt`. TLS needs a name, not an IP address.
   */
  readonly url: string;
  /** ms without an answer after which a call throws `EventLogUnavailable`. */
  readonly timeLimitMs?: number;
  /** Is told of outages and their ends. */
  readonly logger?: Logger;
};

const HEALTH_LIMIT_MS = 2000;

/** Connects with the first call. Throws `UnreadableConnectionString`. */
export function eventStoreDbEventLog(options: EventStoreDbEventLogOptions): EventLog {
  const { url, timeLimitMs = 5000 } = options;
  const connection = eventStoreConnection(eventStoreSettings(url), { ...options, timeLimitMs });
  const reader = logReader(connection);
  const watch = appendWatch(connection.listen);
  const append = eventStoreAppend(connection, reader, timeLimitMs);
  const searchHead = headSearch(reader.before);
  const handedOver = new Set<Promise<unknown>>();
  const closing = new AbortController();
  let closed: Promise<void> | null = null;

  function assertOpen(): void {
    if (closed !== null) throw new EventLogUnavailable({ cause: new Error('the event log is closed') });
  }

  /** Runs what `close` waits for. */
  async function handOver<T>(run: () => Promise<T>): Promise<T> {
    assertOpen();
    const running = run();
    handedOver.add(running);
    try {
      return await running;
    } finally {
      handedOver.delete(running);
    }
  }

  return {
    async append(stream, expected, events) {
      const call = { stream, expected, events: checkedAppend(stream, expected, events) };
      const appended = await handOver(() => append(call));
      watch.announce();
      return appended;
    },
    readStream(stream, { from, direction = 'forwards', max = Number.MAX_SAFE_INTEGER } = {}) {
      return handOver(async () => {
        const events: RecordedEvent[] = [];
        for (let next = firstOf(direction, from); next !== null && events.length < max; ) {
          const page = await reader.streamPage(stream, next, direction, max - events.length);
          events.push(...page.events);
          next = page.next;
        }
        return events;
      });
    },
    readAll({ after, max, filter }) {
      return handOver(async () => {
        const events: RecordedEvent[] = [];
        let cursor = known(after);
        for (let more = true; more && events.length < max; ) {
          const page = await reader.page(cursor, max - events.length, filter);
          events.push(...page.events);
          cursor = page.cursor;
          more = !page.end;
        }
        return events;
      });
    },
    subscribeAll: ({ after, ...rest }) =>
      eventStoreSubscription(
        { reader, watch, closing: closing.signal, assertOpen },
        { ...rest, after: known(after) },
      ),
    head: () => handOver(searchHead),
    async health() {
      try {
        await handOver(() => reader.probe(Math.min(timeLimitMs, HEALTH_LIMIT_MS)));
        return { ok: true };
      } catch {
        return { ok: false };
      }
    },
    close() {
      closed ??= finish();
      return closed;
    },
  };

  async function finish(): Promise<void> {
    closing.abort();
    watch.stop();
    await Promise.allSettled(handedOver);
    await connection.close();
  }
}

/** null: nothing stands there. */
function firstOf(direction: 'forwards' | 'backwards', from: bigint | undefined): bigint | 'end' | null {
  if (direction === 'backwards')
    return from === undefined || from >= LAST_REVISION ? 'end' : from < 0n ? null : from;
  if (from === undefined || from < 0n) return 0n;
  return from > LAST_REVISION ? null : from;
}

function known(position: string | null): string | null {
  if (position !== null && !isPosition(position)) throw new RangeError('not a position of this log');
  return position;
}
