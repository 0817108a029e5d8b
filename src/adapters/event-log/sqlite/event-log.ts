// The embedded event log: one SQLite file that several processes of one machine share, on node:sqlite alone.

import { isSqliteBusy } from '#src/lib/sqlite-error.ts';
import {
  type EventLog,
  EventLogUnavailable,
  type RecordedEvent,
  WrongExpectedVersion,
} from '#src/ports/event-log.ts';
import { eventRow, groupCommit } from './append.ts';
import { isDamage, nextTurn, openLogFile, retryWhileBusy, unavailable } from './file.ts';
import { LAST_REVISION, logReader, positionNumber, positionText } from './read.ts';
import { commitWatch, sqliteSubscription } from './subscribe.ts';

export type SqliteEventLogOptions = {
  /** The database file, on a local disk. It and its directory are created if they are missing. */
  readonly file: string;
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
 * without a write-ahead log; `EventLogUnavailable` if other processes keep it locked.
 */
export async function sqliteEventLog(options: SqliteEventLogOptions): Promise<EventLog> {
  const { file, lockTimeoutMs = 5000, onCommit, now = Date.now } = options;
  const db = await retryWhileBusy(() => openLogFile(file), lockTimeoutMs).catch((cause: unknown) => {
    throw isSqliteBusy(cause) ? unavailable(cause) : cause;
  });
  const reader = logReader(db);
  const watch = commitWatch(db);
  const commits = groupCommit(db, {
    lockTimeoutMs,
    now,
    committed(appends) {
      // In a microtask: an observer that throws does not affect the callers' results.
      if (onCommit !== undefined) queueMicrotask(() => onCommit(appends));
      watch.announce();
    },
  });
  let closing: Promise<void> | null = null;
  /** Set by the first call that finds the file damaged: nothing more is written to such a file. */
  let damage: Error | null = null;

  function assertOpen(): void {
    if (closing !== null) throw new EventLogUnavailable({ cause: new Error('the event log is closed') });
    if (damage !== null) throw new EventLogUnavailable({ cause: damage });
  }
  function noteDamage(cause: unknown): never {
    if (isDamage(cause)) damage ??= new Error('the event log is damaged: restore a backup', { cause });
    throw unavailable(cause);
  }
  async function read<T>(run: () => T): Promise<T> {
    const whileOpen = () => {
      assertOpen();
      return run();
    };
    return retryWhileBusy(whileOpen, lockTimeoutMs).catch(noteDamage);
  }

  return {
    async append(stream, expected, events) {
      const rows = events.map(eventRow);
      assertOpen();
      return commits.append({ stream, expected, events: rows }).catch((cause: unknown) => {
        if (cause instanceof WrongExpectedVersion) throw cause;
        return noteDamage(cause);
      });
    },
    readStream: (stream, { from, direction = 'forwards', max = Number.MAX_SAFE_INTEGER } = {}) =>
      read(() =>
        reader.stream(stream, from ?? (direction === 'forwards' ? 0n : LAST_REVISION), direction, max),
      ),
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
    subscribeAll: (subscription) => sqliteSubscription({ read, reader, watch }, subscription),
    async head() {
      const position = await read(() => reader.head());
      return position === 0 ? null : positionText(position);
    },
    async health() {
      try {
        assertOpen();
        await retryWhileBusy(() => commits.probe(), Math.min(lockTimeoutMs, HEALTH_LIMIT_MS));
        return { ok: true };
      } catch {
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
