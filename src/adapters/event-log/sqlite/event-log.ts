// The embedded event log: one SQLite file that several processes of one machine share, on node:sqlite alone.

import { type BigIntStats, statSync } from 'node:fs';
import type { LogProblem } from '#src/domain/monitoring/health.ts';
import { OperatorError } from '#src/lib/operator-error.ts';
import { proven } from '#src/lib/proven.ts';
import { isSqliteBusy, retryWhileBusy } from '#src/lib/sqlite-error.ts';
import {
  type Appended,
  EventLogUnavailable,
  type RecordedEvent,
  type StreamAppend,
  WrongExpectedVersion,
} from '#src/ports/event-log.ts';
import type { ScannedLog } from '#src/ports/event-scan.ts';
import type { Logger } from '#src/ports/logger.ts';
import { knownDamage } from '../known-damage.ts';
import { groupCommit, streamRows } from './append.ts';
import { nextTurn, openLogFile, unavailable } from './file.ts';
import { fileDamage, isLogDamage } from './file-damage.ts';
import { logReader, positionNumber } from './read.ts';
import { positionText } from './row.ts';
import { logScanner } from './scan.ts';
import { storedEvents } from './size.ts';
import { CommitWatch, IDLE_MS, sqliteSubscription } from './subscribe.ts';

export type SqliteEventLogOptions = {
  /** The database file, on a local disk. It and its directory are created if they are missing. */
  readonly file: string;
  /** ms that a call waits for locks of other processes before it throws `EventLogUnavailable`. */
  readonly lockTimeoutMs?: number;
  /** Called after each durable commit (one fsync) with the number of appends that it made durable. */
  readonly onCommit?: (appends: number) => void;
  /** Wall clock for `created`, ms since the Unix epoch. */
  readonly now?: () => number;
  /** Logs that the log accepts no events, with the cause, and that it does again. */
  readonly logger?: Logger;
  /** true: a file that cannot be written is refused. For the service; commands may only read. */
  readonly writes?: boolean;
  /** true: a lock proves that no other service uses the file. Commands may. */
  readonly alone?: boolean;
};

const HEALTH_LIMIT_MS = 2000;
/** A health check writes and syncs at most as often. */
const PROOF = { goodMs: 5000, badMs: 1000 };

/**
 * Throws `OperatorError` for a file of a newer schema, another application's database, a damaged file, a file system
 * without a write-ahead log, and with `writes` for a file that cannot be written; `EventLogUnavailable` if other processes
 * keep it locked.
 */
export async function sqliteEventLog(options: SqliteEventLogOptions): Promise<ScannedLog> {
  const {
    file,
    lockTimeoutMs = 5000,
    onCommit,
    now = Date.now,
    logger,
    writes = false,
    alone = false,
  } = options;
  const { db, hasChecksum } = await retryWhileBusy(() => openLogFile(file), lockTimeoutMs).catch(
    (cause: unknown) => {
      throw isSqliteBusy(cause) ? unavailable(cause) : cause;
    },
  );
  const assertInPlace = fileIdentity(file);
  const reader = logReader(db, hasChecksum);
  const damage = knownDamage(logger, { file });
  const structure = fileDamage({ file, now, logger, onFound: (found) => health.failed(found) });
  const watch = new CommitWatch(db, alone ? IDLE_MS.alone : IDLE_MS.shared);
  const commits = groupCommit(db, {
    lockTimeoutMs,
    now,
    assertWritable() {
      structure.assertNone();
      assertInPlace();
    },
    committed(appends) {
      health.worked();
      // In a microtask: an observer that throws does not affect the callers' results.
      if (onCommit !== undefined) queueMicrotask(() => onCommit(appends));
      watch.announce();
    },
    failed: (cause) => health.failed(cause),
  });
  const health = proven({
    ...PROOF,
    probe: () => retryWhileBusy(() => commits.probe(), Math.min(lockTimeoutMs, HEALTH_LIMIT_MS)),
    kindOf: problemOf,
    changed(failure) {
      logger?.condition('eventLog', failure && problemOf(failure.cause), { file }, failure?.cause);
    },
  });
  let closing: Promise<void> | null = null;

  function assertOpen(): void {
    if (closing !== null) throw new EventLogUnavailable({ cause: new Error('the event log is closed') });
  }
  function failedBy(cause: unknown): never {
    if (cause instanceof WrongExpectedVersion) throw cause;
    damage.noteError(cause);
    throw unavailable(structure.noted(cause));
  }
  async function read<T>(run: () => T): Promise<T> {
    const whileOpen = () => {
      assertOpen();
      return run();
    };
    return retryWhileBusy(whileOpen, lockTimeoutMs).catch(failedBy);
  }
  const scanner = logScanner({ file, read, damage, structure });

  if (writes) {
    const failure = await health.check();
    // What a damaged log has is still answered.
    if (failure !== null && !isLogDamage(failure.cause)) {
      db.close();
      throw cannotBeWritten(file, failure.cause);
    }
  }

  async function appendTogether(appends: readonly StreamAppend[]): Promise<readonly Appended[]> {
    const call = streamRows(appends);
    assertOpen();
    return commits.append(call).catch(failedBy);
  }

  return {
    async append(stream, expected, events) {
      const [appended] = await appendTogether([{ stream, expected, events }]);
      return appended ?? Promise.reject(new Error('an append has a result'));
    },
    appendTogether,
    readStream: (stream, range = {}) => read(() => watch.lookAfter(() => reader.stream(stream, range))),
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
      const position = await read(() => watch.lookAfter(() => reader.head()));
      return position === 0 ? null : positionText(position);
    },
    async health() {
      if (closing !== null) return { ok: false, problem: 'unavailable' };
      const failure = await health.check();
      return damage.health(failure && problemOf(failure.cause));
    },
    lastPosition: scanner.lastPosition,
    scan: scanner.scan,
    checkFiles: scanner.checkFiles,
    storedEvents: (sinceMs) => read(() => storedEvents(db, sinceMs)),
    close() {
      closing ??= commits.drained().then(() => {
        watch.stop();
        scanner.close();
        db.close();
      });
      return closing;
    },
  };
}

function problemOf(cause: unknown): LogProblem {
  if (cause instanceof FileReplaced) return 'replaced';
  if (isLogDamage(cause)) return 'damaged';
  return isSqliteBusy(cause) ? 'unavailable' : 'not_writable';
}

function cannotBeWritten(file: string, cause: unknown): Error {
  if (isSqliteBusy(cause)) return unavailable(cause);
  return new OperatorError(`event log ${file} cannot be written: ${(cause as Error)?.message ?? cause}`, {
    cause,
  });
}

// ── file identity ────────────────────────────────────────────────────────────────────────────────────
// Whether the open file is still the one at its path. What is written to a file that was removed or replaced is lost when
// the process ends.

/** The log's file, or its write-ahead log, was removed or replaced while it was open. */
class FileReplaced extends Error {
  constructor(file: string) {
    super(`${file} was removed or replaced while it was open`);
    this.name = 'FileReplaced';
  }
}

/** A function that throws `FileReplaced` once that has happened. Called right after the file was opened. */
function fileIdentity(file: string): () => void {
  const wal = `${file}-wal`;
  const opened = identityOf(file);
  /** SQLite makes it with the first write, or shares that of another process. */
  let openedWal = identityOf(wal);
  return () => {
    if (identityOf(file) !== opened) throw new FileReplaced(file);
    const now = identityOf(wal);
    openedWal ??= now;
    if (now !== openedWal) throw new FileReplaced(wal);
  };
}

function identityOf(path: string): string | null {
  const stat: BigIntStats | undefined = statSync(path, { bigint: true, throwIfNoEntry: false });
  return stat === undefined ? null : `${stat.dev} ${stat.ino}`;
}
