// A subscription to the server, from the position last delivered on. The server ends it with a lost connection, and as too
// slow; the client does not open it again.
import { excludeSystemEvents, type ReadPosition, START } from '@eventstore/db-client';
import { anyOf, growingPause, sleep, unlessAborted } from '#src/lib/time.ts';
import { type AbortSignalLike, EventDamaged, type EventLog, type LiveMessage } from '#src/ports/event-log.ts';
import type { Logger } from '#src/ports/logger.ts';
import { type EventStoreConnection, LEADER } from './connection.ts';
import { positionOf, serverEvent } from './events.ts';
import type { EventStoreReader } from './read.ts';

/** Events that a subscription buffers for a slow reader before it applies backpressure to the server. */
const READ_AHEAD = 1024;
const DROPS_LOGGED_EVERY_MS = 60_000;

export function eventStoreSubscriptions(
  connection: EventStoreConnection,
  { whole, head }: Pick<EventStoreReader, 'whole' | 'head'>,
  logger: Logger | undefined,
): EventLog['subscribeAll'] {
  let dropLoggedAt = Number.NEGATIVE_INFINITY;

  function logDrop(cause: unknown): void {
    if (performance.now() - dropLoggedAt < DROPS_LOGGED_EVERY_MS) return;
    dropLoggedAt = performance.now();
    logger?.warn('the event log dropped the subscription; it resumes from its last position', { cause });
  }

  async function* subscribe({
    after,
    signal,
  }: Parameters<EventLog['subscribeAll']>[0]): AsyncGenerator<LiveMessage, void> {
    let cursor = after;
    let caughtUp = false;
    let followed = false;
    for (let failures = 0; !signal.aborted; failures++) {
      if (failures > 0) await sleep(growingPause(failures - 1), signal, connection.closing);
      const goal = await unlessAborted(
        head().then((position) => ({ position })),
        signal,
      ).catch(() => null);
      connection.assertOpen();
      // The log is unavailable, which the failed call has logged.
      if (goal === null) continue;
      const { live, end } = follow(connection, cursor, signal);
      try {
        if (followed) yield { kind: 'resumed' };
        followed = true;
        const events = live[Symbol.asyncIterator]();
        while (!live.destroyed) {
          if (!caughtUp && (goal.position === null || (cursor !== null && cursor >= goal.position))) {
            caughtUp = true;
            yield { kind: 'caught_up' };
          }
          const { done, value } = await events.next();
          if (done) break;
          const next = serverEvent(value);
          if (next === null || (cursor !== null && next.position <= cursor)) continue;
          cursor = next.position;
          failures = 0;
          const event = whole(next);
          if (event !== null) yield { kind: 'event', event };
        }
      } catch (cause) {
        if (cause instanceof EventDamaged) throw cause;
        logDrop(cause);
      } finally {
        end();
      }
    }
  }

  return (range) => {
    if (range.after !== null) positionOf(range.after);
    return subscribe(range);
  };
}

/**
 * Ends with the signal, with `close` and with its channel. The server excludes its own events: with its standard
 * projections enabled it would drop an unfiltered subscription as too slow.
 */
function follow(connection: EventStoreConnection, after: string | null, signal: AbortSignalLike) {
  const fromPosition: ReadPosition = after === null ? START : positionOf(after);
  const range = { ...LEADER, fromPosition, filter: excludeSystemEvents() };
  const client = connection.client();
  const live = client.subscribeToAll(range, { highWaterMark: READ_AHEAD });
  const ended = anyOf(signal, connection.closing, client.left);
  // It may also fail after its end.
  live.on('error', () => {});
  const end = () => {
    ended.release();
    live.unsubscribe().catch(() => {});
    live.destroy();
  };
  ended.signal.addEventListener('abort', end);
  return { live, end };
}
