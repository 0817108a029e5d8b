// The event log on EventStoreDB 23.10, through the package's client. It needs neither projections nor persistent
// subscriptions on the server. The server's own events (`$`) and events that are not JSON are skipped.
import { clearInterval, setInterval } from 'node:timers';
import {
  END,
  excludeSystemEvents,
  MaxAppendSizeExceededError,
  type ReadPosition,
  START,
  StreamDeletedError,
  StreamNotFoundError,
  type SubscribeToAllOptions,
  WrongExpectedVersionError,
} from '@eventstore/db-client';
import { type CheckedEvent, checkedAppend } from '#src/adapters/event-log/append-arguments.ts';
import { growingPause, sleep, unlessAborted, withTimeout } from '#src/lib/time.ts';
import {
  type AbortSignalLike,
  type Appended,
  type EventFilter,
  type EventLog,
  EventLogUnavailable,
  type ExpectedRevision,
  type LiveMessage,
  type RecordedEvent,
  WrongExpectedVersion,
} from '#src/ports/event-log.ts';
import type { Logger } from '#src/ports/logger.ts';
import { type Client, collect, eventStoreConnection, NoAnswer } from './connection.ts';
import {
  eventToAppend,
  headSearch,
  matches,
  PAGE_EVENTS,
  positionOf,
  positionText,
  type ServerEvent,
  serverEvent,
  validPosition,
} from './events.ts';
import { eventStoreSettings } from './url.ts';

export { UnreadableConnectionString } from './url.ts';

export type EventStoreDbEventLogOptions = {
  /**
   * `esdb://` or `kurrentdb://`, with `+discover` for a cluster, in the form of the server's clients:
   * `esdb://user:password@host:2113?tlsCAFile=ca.crt`. TLS needs a name, not an IP address.
   */
  readonly url: string;
  /** ms without an answer after which a call throws `EventLogUnavailable`. */
  readonly timeLimitMs?: number;
  /** Logs outages, their ends, and dropped subscriptions. */
  readonly logger?: Logger;
};

const HEALTH_LIMIT_MS = 2000;
/** The server's largest revision: that of a tombstoned stream. */
const LAST_REVISION = 2n ** 63n - 1n;
/** After this time without a message a subscription is compared with the head. */
const SILENCE_MS = 1000;
/** Events that a subscription buffers for a slow reader before it applies backpressure to the server. */
const READ_AHEAD = 1024;
const DROPS_LOGGED_EVERY_MS = 60_000;

const LEADER = { requiresLeader: true };

type Page = { readonly events: RecordedEvent[]; readonly cursor: string | null; readonly end: boolean };

/** Connects with the first call. Throws `UnreadableConnectionString`. */
export function eventStoreDbEventLog(options: EventStoreDbEventLogOptions): EventLog {
  const { url, timeLimitMs = 5000, logger } = options;
  const connection = eventStoreConnection(eventStoreSettings(url), { ...options, timeLimitMs });
  const running = new Set<Promise<unknown>>();
  const closing = new AbortController();
  let closed: Promise<void> | null = null;
  let dropLoggedAt = Number.NEGATIVE_INFINITY;

  function assertOpen(): void {
    if (closed !== null) throw new EventLogUnavailable({ cause: new Error('the event log is closed') });
  }

  /** `close` waits for the call. */
  async function track<T>(run: () => Promise<T>): Promise<T> {
    assertOpen();
    const call = run();
    running.add(call);
    try {
      return await call;
    } finally {
      running.delete(call);
    }
  }

  async function append(
    stream: string,
    expected: ExpectedRevision,
    events: readonly CheckedEvent[],
  ): Promise<Appended> {
    // No stream is at the server's last revision; a larger one cannot be sent.
    const sent = typeof expected === 'bigint' && expected >= LAST_REVISION ? LAST_REVISION - 1n : expected;
    const call = async (client: Client) => {
      const appending = client.appendToStream(stream, events.map(eventToAppend), {
        ...LEADER,
        expectedRevision: sent,
        // The server drops an append that it has not begun by then. One that it has begun may be stored later.
        deadline: timeLimitMs,
      });
      return withTimeout(appending, timeLimitMs, () => new NoAnswer(timeLimitMs));
    };
    try {
      const { nextExpectedRevision, position } = await connection.call(call);
      // For a repeat whose events are not replicated yet, the server returns no position.
      return {
        nextRevision: nextExpectedRevision,
        position:
          position === undefined ? await positionAt(stream, nextExpectedRevision) : positionText(position),
      };
    } catch (error) {
      if (error instanceof WrongExpectedVersionError) {
        const actual = typeof error.actualVersion === 'bigint' ? error.actualVersion : null;
        throw new WrongExpectedVersion(stream, expected, actual);
      }
      if (error instanceof StreamDeletedError)
        throw new WrongExpectedVersion(stream, expected, LAST_REVISION);
      if (error instanceof MaxAppendSizeExceededError) {
        throw new RangeError('the events of one append are larger than the event store accepts', {
          cause: error,
        });
      }
      throw error;
    }
  }

  async function positionAt(stream: string, revision: bigint): Promise<string> {
    const [event] = await readPage(stream, revision, 'forwards', 1);
    if (event?.revision === revision) return event.position;
    throw new EventLogUnavailable({ cause: new Error('the events are stored but cannot be read yet') });
  }

  /** A missing or deleted stream is empty. */
  function readPage(
    stream: string,
    fromRevision: bigint | typeof END,
    direction: 'forwards' | 'backwards',
    maxCount: number,
  ): Promise<ServerEvent[]> {
    const read = { ...LEADER, fromRevision, direction, maxCount };
    return connection
      .call((client) => collect(client.readStream(stream, read), timeLimitMs, serverEvent))
      .catch((error: unknown) => {
        if (error instanceof StreamNotFoundError || error instanceof StreamDeletedError) return [];
        throw error;
      });
  }

  /** `from` is inclusive forwards and exclusive backwards. */
  function readLog(
    from: string | typeof START | typeof END,
    direction: 'forwards' | 'backwards',
    maxCount: number,
    limitMs = timeLimitMs,
  ): Promise<ServerEvent[]> {
    const fromPosition: ReadPosition = from === START || from === END ? from : positionOf(from);
    const read = { ...LEADER, fromPosition, direction, maxCount };
    return connection.call((client) => collect(client.readAll(read), limitMs, serverEvent));
  }

  /** The port's filter is applied here: the server filters subscriptions only. */
  async function page(after: string | null, max: number, filter?: EventFilter): Promise<Page> {
    const count = filter === undefined ? Math.min(max + 1, PAGE_EVENTS) : PAGE_EVENTS;
    const read = await readLog(after ?? START, 'forwards', count);
    const events: RecordedEvent[] = [];
    let cursor = after;
    for (const { position, event } of read) {
      if (cursor !== null && position <= cursor) continue;
      cursor = position;
      if (event !== null && matches(event, filter)) events.push(event);
      if (events.length === max) return { events, cursor, end: false };
    }
    return { events, cursor, end: read.length < count };
  }

  const head = headSearch((from, count) => readLog(from, 'backwards', count));

  type SubscribeOptions = {
    readonly after: string | null;
    readonly filter?: EventFilter;
    readonly signal: AbortSignalLike;
  };

  async function* subscribe({ after, filter, signal }: SubscribeOptions): AsyncGenerator<LiveMessage, void> {
    let cursor = after;
    let caughtUp = false;
    let dropped: unknown = null;
    let followed = false;
    for (let failures = 0; !signal.aborted; failures++) {
      assertOpen();
      if (failures > 0) await sleep(growingPause(failures - 1), signal, closing.signal);
      const goal = await unlessAborted(
        track(head).then(
          (position) => ({ position }),
          () => null,
        ),
        signal,
      );
      // Aborted, or the log is unavailable, which the failed call has logged.
      if (goal === null) {
        dropped = null;
        continue;
      }
      if (dropped !== null) logDrop(dropped);
      if (followed) yield { kind: 'resumed' };
      followed = true;
      const live = follow(cursor, signal);
      try {
        for (;;) {
          if (!caughtUp && (goal.position === null || (cursor !== null && cursor >= goal.position))) {
            caughtUp = true;
            yield { kind: 'caught_up' };
          }
          const next = await live.next();
          if (signal.aborted) return;
          if (next === null) break;
          cursor = next.position;
          failures = 0;
          if (next.event !== null && matches(next.event, filter)) yield { kind: 'event', event: next.event };
          if (signal.aborted) return;
        }
      } catch (error) {
        dropped = error;
      } finally {
        live.end();
      }
    }
  }

  /**
   * The server excludes its own events: with its standard projections enabled it would drop an unfiltered subscription as
   * too slow. `next` returns null at the end and throws on any fault. The subscription ends with the signal, with `close`,
   * and if it delivers nothing although the head has advanced.
   */
  function follow(after: string | null, signal: AbortSignalLike) {
    const options: SubscribeToAllOptions = {
      ...LEADER,
      fromPosition: after === null ? START : positionOf(after),
      filter: excludeSystemEvents({ checkpointInterval: 1000 }),
    };
    const events = connection.client().subscribeToAll(options, { highWaterMark: READ_AHEAD });
    // It may also fail after its end.
    events.on('error', () => {});
    const iterator = events[Symbol.asyncIterator]();
    let cursor = after;
    const end = () => {
      clearInterval(watch);
      for (const each of [signal, closing.signal]) each.removeEventListener('abort', end);
      events.unsubscribe().catch(() => {});
      events.destroy();
    };
    const watch = setInterval(async () => {
      const before = cursor;
      const last = await track(head).catch(() => null);
      const behind = last !== null && (before === null || before < last);
      if (behind && cursor === before && events.readableLength === 0) end();
    }, SILENCE_MS);
    for (const each of [signal, closing.signal]) each.addEventListener('abort', end, { once: true });
    return {
      end,
      async next(): Promise<ServerEvent | null> {
        while (!events.destroyed) {
          const { done, value } = await iterator.next();
          if (done) return null;
          const next = serverEvent(value);
          if (next === null || (cursor !== null && next.position <= cursor)) continue;
          cursor = next.position;
          watch.refresh();
          return next;
        }
        return null;
      },
    };
  }

  function logDrop(cause: unknown): void {
    const now = performance.now();
    if (now - dropLoggedAt < DROPS_LOGGED_EVERY_MS) return;
    dropLoggedAt = now;
    logger?.warn('the event log dropped the subscription; it resumes from its last position', { cause });
  }

  async function finish(): Promise<void> {
    closing.abort();
    await Promise.allSettled(running);
    await connection.close();
  }

  return {
    async append(stream, expected, events) {
      const checked = checkedAppend(stream, expected, events);
      return track(() => append(stream, expected, checked));
    },
    readStream(stream, { from, direction = 'forwards', max = Number.MAX_SAFE_INTEGER } = {}) {
      return track(async () => {
        const events: RecordedEvent[] = [];
        let next = firstOf(direction, from);
        while (next !== null && events.length < max) {
          const count = Math.min(max - events.length, PAGE_EVENTS);
          const read: ServerEvent[] = await readPage(stream, next, direction, count);
          events.push(...read.flatMap(({ event }) => event ?? []));
          const last = read.at(-1)?.revision;
          if (last === undefined || read.length < count) next = null;
          else if (direction === 'forwards') next = last + 1n;
          else next = last === 0n ? null : last - 1n;
        }
        return events;
      });
    },
    readAll({ after, max, filter }) {
      return track(async () => {
        const events: RecordedEvent[] = [];
        let cursor = validPosition(after);
        for (let more = true; more && events.length < max; ) {
          const next = await page(cursor, max - events.length, filter);
          events.push(...next.events);
          cursor = next.cursor;
          more = !next.end;
        }
        return events;
      });
    },
    subscribeAll: (options) => subscribe({ ...options, after: validPosition(options.after) }),
    head: () => track(head),
    async health() {
      try {
        await track(() => readLog(END, 'backwards', 1, Math.min(timeLimitMs, HEALTH_LIMIT_MS)));
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
}

/** null: no event can have such a revision. */
function firstOf(direction: 'forwards' | 'backwards', from: bigint | undefined): bigint | typeof END | null {
  if (direction === 'backwards') {
    return from === undefined || from >= LAST_REVISION ? END : from < 0n ? null : from;
  }
  if (from === undefined || from < 0n) return 0n;
  return from > LAST_REVISION ? null : from;
}
