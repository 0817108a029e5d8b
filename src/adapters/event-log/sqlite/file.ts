// The file of the embedded log: how it is created and opened, which files are refused, and how its locks are waited for.
import { closeSync, mkdirSync, openSync } from 'node:fs';
import { dirname } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { sleep } from '#src/lib/time.ts';

const SCHEMA_VERSION = 1;
/** "RLOG": tells our file from any other SQLite database. */
const APPLICATION_ID = 0x524c4f47;

// Positions are rowids assigned under the one write lock, so they follow the order of commits and, as nothing is ever
// deleted, have no gaps. `stream` and `type` precede the payload: a filter never reads overflow pages. INSERT OR REPLACE
// deletes without firing a delete trigger, hence the third. Health writes to `probe` after a failed commit.
const SCHEMA = `
  CREATE TABLE events (
    position INTEGER PRIMARY KEY,
    stream TEXT NOT NULL,
    revision INTEGER NOT NULL,
    id TEXT NOT NULL,
    type TEXT NOT NULL,
    created INTEGER NOT NULL,
    data TEXT NOT NULL,
    metadata TEXT NOT NULL,
    UNIQUE (stream, revision)
  ) STRICT;
  CREATE TRIGGER events_are_not_updated BEFORE UPDATE ON events
    BEGIN SELECT RAISE(ABORT, 'the event log is append-only'); END;
  CREATE TRIGGER events_are_not_deleted BEFORE DELETE ON events
    BEGIN SELECT RAISE(ABORT, 'the event log is append-only'); END;
  CREATE TRIGGER events_are_not_replaced BEFORE INSERT ON events
    WHEN EXISTS (SELECT 1 FROM events WHERE stream = NEW.stream AND revision = NEW.revision)
      OR EXISTS (SELECT 1 FROM events WHERE position = NEW.position)
    BEGIN SELECT RAISE(ABORT, 'the event log is append-only'); END;
  CREATE TABLE probe (one INTEGER PRIMARY KEY CHECK (one = 1), bytes BLOB NOT NULL) STRICT;
  PRAGMA application_id = ${APPLICATION_ID};
  PRAGMA user_version = ${SCHEMA_VERSION};
`;

/**
 * Opens the log's file; makes it, and its directory, readable by the owner alone. Never waits for a lock: throws
 * SQLITE_BUSY while another process opens, recovers or closes it, and the caller tries again.
 */
export function openLogFile(file: string): DatabaseSync {
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
  makePrivate(file);
  const db = new DatabaseSync(file, { timeout: 0 });
  try {
    refuseForeign(db, file);
    const mode = db.prepare('PRAGMA journal_mode = WAL').get()?.journal_mode;
    if (mode !== 'wal') throw new Error(`event log ${file}: no write-ahead log here (journal mode ${mode})`);
    // FULL: the write-ahead log is synced before COMMIT answers. The limit gives space back after a burst.
    db.exec('PRAGMA synchronous = FULL; PRAGMA journal_size_limit = 67108864; PRAGMA cache_size = -16384');
    if (versionOf(db) === 0) makeSchema(db);
    return db;
  } catch (error) {
    db.close();
    throw error;
  }
}

/**
 * SQLite gives its side files the mode of the main one. Only a file that is not there yet is opened here: closing
 * any descriptor of a database drops every POSIX lock that this process holds on it (sqlite.org/howtocorrupt §2.2).
 */
function makePrivate(file: string): void {
  try {
    closeSync(openSync(file, 'wx', 0o600));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  }
}

function refuseForeign(db: DatabaseSync, file: string): void {
  const version = versionOf(db);
  const known = number(db, 'PRAGMA application_id') === APPLICATION_ID;
  const empty = number(db, 'SELECT count(*) FROM sqlite_schema') === 0;
  if (!known && !empty) throw new Error(`${file} is a database, but not an event log`);
  if (version > SCHEMA_VERSION) {
    throw new Error(
      `event log ${file} has schema version ${version}; this program knows up to ${SCHEMA_VERSION}`,
    );
  }
}

function makeSchema(db: DatabaseSync): void {
  db.exec('BEGIN IMMEDIATE');
  try {
    // Another process may have been first.
    if (versionOf(db) === 0) db.exec(SCHEMA);
    db.exec('COMMIT');
  } catch (error) {
    if (db.isTransaction) db.exec('ROLLBACK');
    throw error;
  }
}

const versionOf = (db: DatabaseSync): number => number(db, 'PRAGMA user_version');

function number(db: DatabaseSync, sql: string): number {
  const row: object = db.prepare(sql).get() ?? {};
  return Number(Object.values(row)[0]);
}

/** Another connection holds the lock that this call needs; nothing was done. */
export function isBusy(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  const code = 'errcode' in error ? error.errcode : undefined;
  // SQLITE_BUSY with its extended forms, and SQLITE_PROTOCOL (a lost race for the write-ahead log's locks).
  if (typeof code === 'number') return (code & 0xff) === 5 || (code & 0xff) === 15;
  // Deno omits the code if the failing call was exec().
  return /database is locked|locking protocol/.test(error.message);
}

/** Repeats `run` while it meets a lock, without blocking the event loop; throws the lock's error after `limitMs`. */
export async function retryWhileBusy<T>(run: () => T, limitMs: number): Promise<T> {
  const end = performance.now() + limitMs;
  for (let tries = 0; ; tries++) {
    try {
      return run();
    } catch (error) {
      if (!isBusy(error) || performance.now() >= end) throw error;
    }
    await stepAside(tries);
  }
}

/** 1 to 2 ms at first, up to 1 to 12 ms later: another process's group takes about one. */
export function stepAside(tries: number): Promise<void> {
  return sleep(1 + Math.random() * Math.min(1 + tries, 11));
}

/** Lets timers, input and other callers run. */
export function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
