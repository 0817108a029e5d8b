// The event log on EventStoreDB 23.10, through the package's client. It needs neither projections nor persistent
// subscriptions on the server. The server's own events (`$`) and events that are not JSON are skipped.
import {
  ANY,
  binaryEvent,
  END,
  type EventStoreDBClient,
  excludeSystemEvents,
  NO_STREAM,
  type ReadPosition,
  type ReadRevision,
  START,
  StreamDeletedError,
  StreamNotFoundError,
  WrongExpectedVersionError,
} from '@eventstore/db-client';
import type { LogProblem } from '#src/domain/monitoring/health.ts';
import { proven } from '#src/lib/proven.ts';
import { growingPause, sleep, unlessAborted } from '#src/lib/time.ts';
import {
  type AbortSignalLike,
  EventDamaged,
  type EventLog,
  EventLogUnavailable,
  type LiveMessage,
  type RecordedEvent,
  WrongExpectedVersion,
} from '#src/ports/event-log.ts';
import type { EventScan, ScannedLog } from '#src/ports/event-scan.ts';
import type { Logger } from '#src/ports/logger.ts';
import { knownDamage } from '../known-damage.ts';
import { eventStoreConnection, refusalIn } from './connection.ts';
import * as convert from './events.ts';
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

const HEALTH_LIMIT_MS = 2000;
/** Events that a subscription buffers for a slow reader before it applies backpressure to the server. */
const READ_AHEAD = 1024;
const DROPS_LOGGED_EVERY_MS = 60_000;

/** Within the 30 s of the port; a probe is a stored event. */
const PROOF = { goodMs: 25_000, badMs: 1000 };
/** Its events are not JSON, so they are no part of this log. */
const SCRATCH_STREAM = 'relay-health';
const EMPTY = new Uint8Array();

/** The server answers, and refuses appends: a missing right, a full disk. `unavailable`: it refuses reads too. */
class AcceptsNothing extends Error {
  readonly problem: LogProblem;
  constructor(problem: LogProblem, options: ErrorOptions) {
    super('the server refuses an append', options);
    this.problem = problem;
  }
}

const problemOf = (cause: unknown): LogProblem =>
  cause instanceof AcceptsNothing ? cause.problem : 'unavailable';

const LEADER = { requiresLeader: true };

type Direction = 'forwards' | 'backwards';

/** Connects with the first call. Throws `UnreadableConnectionString`. */
export function eventStoreDbEventLog(options: EventStoreDbEventLogOptions): ScannedLog {
  const { url, timeLimitMs = 5000, logger } = options;
  const connection = eventStoreConnection(eventStoreSettings(url), timeLimitMs, logger);
  const { assertOpen, closing } = connection;
  let dropLoggedAt = Number.NEGATIVE_INFINITY;
  const health = proven({
    ...PROOF,
    probe,
    kindOf: (cause) => (cause instanceof AcceptsNothing ? cause.problem : 'no_answer'),
    changed(failure) {
      if (failure === null) logger?.info('the event log accepts events');
      // A server that does not answer is logged by the connection.
      else if (failure.cause instanceof AcceptsNothing)
        logger?.error('the event log answers, and accepts no events: no call is executed', failure);
    },
  });

  const damage = knownDamage(logger);
  /** null: not part of this log. */
  function whole(read: convert.ServerEvent): RecordedEvent | null {
    if (!read.damaged) return read.event;
    const found = convert.damageOf(read);
    damage.note(found);
    throw new EventDamaged(found);
  }

  const append: EventLog['append'] = async (stream, expected, given) => {
    const events = given.map(convert.eventToAppend);
    // The server drops an append that it has not begun by the deadline. One that it has begun may be stored later.
    const options = { ...LEADER, expectedRevision: expected, deadline: timeLimitMs };
    const { nextExpectedRevision: nextRevision, position } = await connection
      .call((client) => client.appendToStream(stream, events, options))
      .catch((error: unknown) => {
        noteOutage(error);
        if (error instanceof StreamDeletedError) throw new WrongExpectedVersion(stream, expected, null);
        if (!(error instanceof WrongExpectedVersionError)) throw error;
        const { actualVersion: actual } = error;
        throw new WrongExpectedVersion(stream, expected, typeof actual === 'bigint' ? actual : null);
      });
    health.worked();
    if (position !== undefined) return { nextRevision, position: convert.positionText(position) };
    throw new EventLogUnavailable({ cause: new Error('the stream of the repeated append was deleted') });
  };

  /** A missing or deleted stream is empty. Events in it that are not part of this log count in `max`. */
  const readStream: EventLog['readStream'] = async (stream, options = {}) => {
    const { direction = 'forwards', max: maxCount = Number.MAX_SAFE_INTEGER } = options;
    const fromRevision: ReadRevision = options.from ?? (direction === 'forwards' ? START : END);
    const range = { ...LEADER, fromRevision, direction, maxCount };
    try {
      const read = await connection.read((client) => client.readStream(stream, range));
      return read.flatMap((each) => whole(each) ?? []);
    } catch (error) {
      if (error instanceof StreamNotFoundError || error instanceof StreamDeletedError) return [];
      throw noteOutage(error);
    }
  };

  /** A read that fails is no proof either: the next check of the health probes. */
  function noteOutage(error: unknown): unknown {
    if (error instanceof EventLogUnavailable) health.failed(error);
    return error;
  }

  /** `from`: inclusive forwards, exclusive backwards; null: the beginning, or the end. */
  function readLog(from: string | null, direction: Direction, maxCount: number, limitMs = timeLimitMs) {
    const first = direction === 'forwards' ? START : END;
    const fromPosition: ReadPosition = from === null ? first : convert.positionOf(from);
    const range = { ...LEADER, fromPosition, direction, maxCount };
    return connection.read((client) => client.readAll(range), limitMs);
  }

  const head = convert.headSearch((from, count) => readLog(from, 'backwards', count));

  /** Types are filtered here: the server filters subscriptions only. */
  const readAll: EventLog['readAll'] = async ({ after, max, types }) => {
    const events: RecordedEvent[] = [];
    let cursor = after;
    for (let more = true; more && events.length < max; ) {
      const read = await readLog(cursor, 'forwards', convert.PAGE_EVENTS);
      for (const each of read) {
        if (cursor !== null && each.position <= cursor) continue;
        cursor = each.position;
        const event = whole(each);
        if (event !== null && (types?.includes(event.type) ?? true)) events.push(event);
        if (events.length === max) break;
      }
      more = read.length === convert.PAGE_EVENTS;
    }
    return events;
  };

  /** The server verifies the hashes of its chunks itself: here a damaged event is one that is not JSON any more. */
  const scan: EventScan['scan'] = async ({ after, max }) => {
    // `after` itself is read again.
    const count = Math.min(max, convert.PAGE_EVENTS) + (after === null ? 0 : 1);
    const read = await readLog(after, 'forwards', count);
    const found = read
      .filter(({ position }) => after === null || position > after)
      .flatMap(convert.scannedEvent);
    for (const one of found) if (one.kind === 'damaged') damage.note(one.damage);
    const next = read.length < count ? null : (read.at(-1)?.position ?? null);
    return { found, next, unchecked: 0, unindexed: [] };
  };

  async function* subscribe({
    after,
    signal,
  }: Parameters<EventLog['subscribeAll']>[0]): AsyncGenerator<LiveMessage, void> {
    let cursor = after;
    let caughtUp = false;
    let followed = false;
    for (let failures = 0; !signal.aborted; failures++) {
      if (failures > 0) await sleep(growingPause(failures - 1), signal, closing);
      const goal = await unlessAborted(
        head().then((position) => ({ position })),
        signal,
      ).catch(() => null);
      assertOpen();
      // The log is unavailable, which the failed call has logged.
      if (goal === null) continue;
      const { live, end } = follow(cursor, signal);
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
          const next = convert.serverEvent(value);
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

  /**
   * Ends with the signal, with `close` and with its channel. The server excludes its own events: with its standard
   * projections enabled it would drop an unfiltered subscription as too slow.
   */
  function follow(after: string | null, signal: AbortSignalLike) {
    const fromPosition: ReadPosition = after === null ? START : convert.positionOf(after);
    const range = { ...LEADER, fromPosition, filter: excludeSystemEvents() };
    const client = connection.client();
    const live = client.subscribeToAll(range, { highWaterMark: READ_AHEAD });
    const ends = [signal, closing, client.left];
    // It may also fail after its end.
    live.on('error', () => {});
    const end = () => {
      for (const each of ends) each.removeEventListener('abort', end);
      live.unsubscribe().catch(() => {});
      live.destroy();
    };
    for (const each of ends) each.addEventListener('abort', end, { once: true });
    return { live, end };
  }

  function logDrop(cause: unknown): void {
    if (performance.now() - dropLoggedAt < DROPS_LOGGED_EVERY_MS) return;
    dropLoggedAt = performance.now();
    logger?.warn('the event log dropped the subscription; it resumes from its last position', { cause });
  }

  /** Appends to a scratch stream. If that fails, a read shows whether the server answers at all. */
  async function probe(): Promise<void> {
    const limitMs = Math.min(timeLimitMs, HEALTH_LIMIT_MS);
    const range = { ...LEADER, expectedRevision: ANY, deadline: limitMs } as const;
    const write = connection.call(async (client) => {
      await client.appendToStream(SCRATCH_STREAM, [binaryEvent({ type: 'probe', data: EMPTY })], range);
      keepOne(client);
    }, limitMs);
    const [written, read] = await Promise.allSettled([write, readLog(null, 'backwards', 1, limitMs)]);
    if (written.status === 'fulfilled') return;
    const options = { cause: written.reason };
    if (read.status === 'fulfilled') throw new AcceptsNothing('not_writable', options);
    throw refusalIn(written.reason.cause) ? new AcceptsNothing('unavailable', options) : written.reason;
  }

  /** Once a process. A server that forbids it keeps every probe until it is scavenged. */
  let isKeptShort = false;
  function keepOne(client: Pick<EventStoreDBClient, 'setStreamMetadata'>): void {
    if (isKeptShort) return;
    isKeptShort = true;
    client
      .setStreamMetadata(SCRATCH_STREAM, { maxCount: 1 }, { expectedRevision: NO_STREAM })
      .catch(() => {});
  }

  return {
    append,
    readStream,
    readAll,
    subscribeAll(range) {
      if (range.after !== null) convert.positionOf(range.after);
      return subscribe(range);
    },
    head,
    lastPosition: head,
    scan,
    checkFiles: async () => null,
    async health() {
      if (closing.aborted) return { ok: false, problem: 'unavailable' };
      const failure = await health.check();
      if (failure === null) return { ok: true, ...damage.health() };
      return { ok: false, problem: problemOf(failure.cause), ...damage.health() };
    },
    close: connection.close,
  };
}
