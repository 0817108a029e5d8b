// The file of the embedded log: creation, opening, refusal of other files, and retries while it is locked.
import { mkdirSync } from 'node:fs';
import { dirname } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { REMEDY } from '#src/domain/damage.ts';
import { createPrivateFile } from '#src/lib/files/durable.ts';
import { refuseForeign, type SqliteKind, versionOf } from '#src/lib/files/sqlite-kind.ts';
import { OperatorError } from '#src/lib/operator-error.ts';
import { isSqliteDenied, sqliteFileError } from '#src/lib/sqlite-error.ts';
import { EventLogUnavailable } from '#src/ports/event-log.ts';

/** Its id is "RLOG". */
const KIND: SqliteKind = { name: 'an event log', applicationId: 0x524c4f47, schemaVersion: 1 };

// Positions are rowids assigned under the one write lock, so they follow the order of commits and, as nothing is ever
// deleted, have no gaps. `stream` and `type` precede the payload: a filter never reads overflow pages. INSERT OR REPLACE
// deletes without firing a delete trigger, hence the third. Health writes to `probe` after a failed commit. `checksum` is
// null in rows of a release that had none: an existing file gets the column when it is opened, and that release can still
// use it.
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
    checksum INTEGER,
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
  PRAGMA application_id = ${KIND.applicationId};
  PRAGMA user_version = ${KIND.schemaVersion};
`;

/**
 * Opens the log's file; creates it, and its directory, readable by the owner only. Never waits for a lock: throws
 * SQLITE_BUSY while another process opens, recovers or closes the file, and the caller tries again.
 */
export function openLogFile(file: string): LogFile {
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
  // SQLite's side files get the mode of the main file.
  createPrivateFile(file);
  try {
    return openDatabase(file);
  } catch (error) {
    throw sqliteFileError(`event log ${file}`, error, `is damaged, or not a database: ${REMEDY.short}`);
  }
}

/** `hasChecksum`: false for an older file that cannot be written. */
export type LogFile = { readonly db: DatabaseSync; readonly hasChecksum: boolean };

function openDatabase(file: string): LogFile {
  const db = new DatabaseSync(file, { timeout: 0 });
  try {
    refuseForeign(db, KIND, { file, shown: `event log ${file}` });
    const mode = db.prepare('PRAGMA journal_mode = WAL').get()?.journal_mode;
    if (mode !== 'wal')
      throw new OperatorError(`event log ${file}: no write-ahead log here (journal mode ${mode})`);
    // FULL: the write-ahead log is synced before COMMIT returns. The size limit frees disk space after a burst.
    // Damage to a page is noticed when it is read, before it can spread.
    db.exec('PRAGMA synchronous = FULL; PRAGMA journal_size_limit = 67108864; PRAGMA cache_size = -16384');
    db.exec('PRAGMA cell_size_check = ON');
    if (versionOf(db) === 0) changeOnce(db, () => versionOf(db) !== 0, SCHEMA);
    return { db, hasChecksum: hasChecksumColumn(db) || addChecksumColumn(db) };
  } catch (error) {
    db.close();
    throw error;
  }
}

/** Unless another process has changed it already. */
function changeOnce(db: DatabaseSync, isChanged: () => boolean, sql: string): void {
  db.exec('BEGIN IMMEDIATE');
  try {
    if (!isChanged()) db.exec(sql);
    db.exec('COMMIT');
  } catch (error) {
    if (db.isTransaction) db.exec('ROLLBACK');
    throw error;
  }
}

export const hasChecksumColumn = (db: DatabaseSync): boolean =>
  db.prepare("SELECT 1 FROM pragma_table_info('events') WHERE name = 'checksum'").get() !== undefined;

/** Events that are stored already get none: that would declare damage among them to be right. */
function addChecksumColumn(db: DatabaseSync): boolean {
  try {
    changeOnce(db, () => hasChecksumColumn(db), 'ALTER TABLE events ADD COLUMN checksum INTEGER');
    return true;
  } catch (error) {
    // A command that only reads can do so without checksums.
    if (isSqliteDenied(error)) return false;
    throw error;
  }
}

/** What a call that SQLite refused with `cause` throws. */
export function unavailable(cause: unknown): EventLogUnavailable {
  return cause instanceof EventLogUnavailable ? cause : new EventLogUnavailable({ cause });
}

/** Lets timers, input and other callers run. */
export function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
