// The embedded event log: one SQLite file that several processes of one machine share, on node:sqlite alone.

import { checkedAppend } from '#src/adapters/event-log/append-arguments.ts';
import { type EventLog, EventLogUnavailable, type RecordedEvent } from '#src/ports/event-log.ts';
import { groupCommit } from './append.ts';
import { DamagedLog, isBusy, nextTurn, openLogFile, retryWhileBusy, unavailable } from './file.ts';
import { LAST_REVISION, logReader, PAGE_ROWS, positionNumber, positionText } from './read.ts';
import { commitWatch, sqliteSubscription } from './subscribe.ts';

export type SqliteEventLogOptions = {
  /** The database file, on a local disk. It and its directory are created if they are missing. */
  readonly file: string;
  /** No other service uses the file, only operator commands; their events are noticed within 250 ms. */
  readonly exclusive?: boolean;
  /** ms that a call waits for locks of other processes before it throws `EventLogUnavailable`. */
  readonly lockTimeoutMs?: number;
  /** Called after each durable commit (one fsync) with the number of appends that it made durable. */
  readonly onCommit?: (appends: number) => void;
  /** Wall clock for `created`, ms since the Unix epoch. */
  readonly now?: () => number;
};

const HEALTH_LIMIT_MS = 2000;

/**
 * Throws an Error with the reason for a file of a newer schema, another application's database, or a file system
 * without a write-ahead log; `EventLogUnavailable` if other processes keep it locked, `DamagedLog` if it is malformed.
 */
export async function sqliteEventLog(options: SqliteEventLogOptions): Promise<EventLog> {
  const { file, exclusive = false, lockTimeoutMs = 5000, onCommit, now = Date.now } = options;
  const db = await retryWhileBusy(() => openLogFile(file), lockTimeoutMs).catch((cause: unknown) => {
    const error = unavailable(cause);
    throw isBusy(cause) || error instanceof DamagedLog ? error : cause;
  });
  /** Set by the first call that finds the file damaged: all later calls fail, because nothing is written to such a file. */
  let damaged: DamagedLog | null = null;
  const refused = (cause: unknown): EventLogUnavailable => {
    const error = unavailable(cause);
    if (error instanceof DamagedLog) damaged ??= error;
    return error;
  };
  const reader = logReader(db);
  const watch = commitWatch(db, exclusive ? 'exclusive' : 'shared');
  const commits = groupCommit(db, {
    lockTimeoutMs,
    now,
    committed(appends) {
      // In a microtask: an observer that throws does not affect the callers' results.
      if (onCommit !== undefined) queueMicrotask(() => onCommit(appends));
      watch.announce();
    },
    refused,
  });
  let closing: Promise<void> | null = null;

  function assertOpen(): void {
    if (closing !== null) throw new EventLogUnavailable({ cause: new Error('the event log is closed') });
    if (damaged !== null) throw damaged;
  }
  async function read<T>(run: () => T): Promise<T> {
    const whileOpen = () => {
      assertOpen();
      return run();
    };
    return retryWhileBusy(whileOpen, lockTimeoutMs).catch((cause: unknown) => {
      throw refused(cause);
    });
  }

  // A file whose first or last page is malformed is refused at once; other pages are found damaged when they are read.
  await read(() => reader.ends()).catch((error: unknown) => {
    if (!(error instanceof DamagedLog)) return;
    db.close();
    throw error;
  });

  return {
    async append(stream, expected, events) {
      const call = { stream, expected, events: checkedAppend(stream, expected, events) };
      assertOpen();
      return commits.append(call);
    },
    async readStream(stream, { from, direction = 'forwards', max = Number.MAX_SAFE_INTEGER } = {}) {
      const events: RecordedEvent[] = [];
      const step = direction === 'forwards' ? 1n : -1n;
      let next = from ?? (direction === 'forwards' ? 0n : LAST_REVISION);
      for (let more = true; more && events.length < max; ) {
        const limit = Math.min(max - events.length, PAGE_ROWS);
        const page = await read(() => reader.streamPage(stream, next, direction, limit));
        events.push(...page);
        next = (page.at(-1)?.revision ?? next) + step;
        more = page.length === limit;
        if (more) await nextTurn();
      }
      return events;
    },
    async readAll({ after, max, types }) {
      const events: RecordedEvent[] = [];
      let cursor = positionNumber(after);
      for (let more = true; more && events.length < max; ) {
        const page = await read(() => reader.page(cursor, max - events.length, types));
        events.push(...page.events);
        cursor = page.cursor;
        more = !page.end;
        if (more) await nextTurn();
      }
      return events;
    },
    subscribeAll: (subscription) => sqliteSubscription({ reader, watch, assertOpen, refused }, subscription),
    async head() {
      const position = await read(() => reader.head());
      return position === 0 ? null : positionText(position);
    },
    async health() {
      try {
        assertOpen();
        await retryWhileBusy(() => commits.probe(), Math.min(lockTimeoutMs, HEALTH_LIMIT_MS));
        return { ok: true };
      } catch (cause) {
        refused(cause);
        return { ok: false };
      }
    },
    close() {
      closing ??= commits.drained().then(() => {
        watch.stop();
        db.close();
      });
      return closing;
    },
  };
}
