// The file of the embedded log: how it is made, opened and guarded, and which files are refused.
// Leaves to others: what an append means (sqlite-append.ts) and who writes when (sqlite-group-commit.ts).
import { closeSync, mkdirSync, openSync } from 'node:fs';
import { dirname } from 'node:path';
import { DatabaseSync } from 'node:sqlite';

const SCHEMA_VERSION = 1;
/** "RLOG": tells our file from any other SQLite database. */
const APPLICATION_ID = 0x524c4f47;

// Positions are rowids given under the one write lock, so they follow the order of commits and, with nothing ever
// deleted, have no gaps. `stream` and `type` stand before the payload: a filter never reads overflow pages.
// INSERT OR REPLACE deletes without firing a delete trigger, hence the third. `probe` is what health writes after a
// failed commit.
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
