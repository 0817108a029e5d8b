// The state of an audit in a SQLite file, which the next audit continues. A run is one transaction: a run that is killed
// leaves the file as it was. A first run writes beside the name, which the file gets when it is complete.
import { chmodSync, renameSync, rmSync } from 'node:fs';
import { dirname } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import type { Json } from '#src/domain/canonical-json.ts';
import { createPrivateFile, flush, sizeOf } from '#src/lib/files/durable.ts';
import { numberOf, refuseForeign, type SqliteKind, versionOf } from '#src/lib/files/sqlite-kind.ts';
import { OperatorError } from '#src/lib/operator-error.ts';
import { isSqliteBusy, sqliteFileError } from '#src/lib/sqlite-error.ts';
import type { AuditState } from '#src/ports/audit-scratch.ts';
import { SCRATCH_SCHEMA, scratchIn } from './scratch-sqlite.ts';
import { StateDamaged } from './state-damaged.ts';

/** Its id is "RAUD". */
const KIND: SqliteKind = { name: 'the state of an audit', applicationId: 0x52415544, schemaVersion: 3 };

const DAMAGED = 'is damaged, or is not the state of an audit: delete it, and audit the complete log again';

/** Mode 0600. Throws an `OperatorError` if another audit uses it, or if it is damaged or another file. */
export function sqliteAuditState<T extends Json>(file: string): AuditState<T> {
  const isNew = sizeOf(file) === null;
  const path = isNew ? `${file}.new` : file;
  const guarded = <R>(work: () => R): R => {
    try {
      return work();
    } catch (error) {
      throw stateError(file, error);
    }
  };
  const db = guarded(() => (isNew ? created(path) : opened(file)));
  const rows = guarded(() => {
    try {
      return scratchIn<T>(db, { isState: true });
    } catch (error) {
      db.close();
      throw error;
    }
  });
  let isSaved = false;
  return {
    isNew,
    get: (key) => guarded(() => rows.get(key)),
    demand: (key) => guarded(() => rows.demand(key)),
    put: (...args) => guarded(() => rows.put(...args)),
    *values(prefix) {
      const all = rows.values(prefix)[Symbol.iterator]();
      for (let next = guarded(() => all.next()); !next.done; next = guarded(() => all.next()))
        yield next.value;
    },
    open: (...args) => guarded(() => rows.open(...args)),
    note: (...args) => guarded(() => rows.note(...args)),
    *repeated() {
      const all = rows.repeated()[Symbol.iterator]();
      for (let next = guarded(() => all.next()); !next.done; next = guarded(() => all.next()))
        yield next.value;
    },
    save() {
      guarded(() => {
        rows.flush();
        db.exec('COMMIT');
        if (isNew) {
          // Of a run that was killed on a state that was deleted since: SQLite would put its pages into this one.
          rmSync(`${file}-journal`, { force: true });
          renameSync(path, file);
          flush(dirname(file));
        }
        db.close();
        isSaved = true;
      });
    },
    close() {
      if (isSaved) return;
      db.close();
      if (isNew) remove(path);
    },
  };
}

/** In a transaction, which locks it for this process. */
function created(path: string): DatabaseSync {
  // Left behind by a run that was killed, unless that run still has it locked.
  if (sizeOf(path) !== null) {
    locked(path).close();
    remove(path);
  }
  if (!createPrivateFile(path)) throw new OperatorError(`${path} is used by another audit`);
  const db = locked(path);
  db.exec(
    `${SCRATCH_SCHEMA}; PRAGMA application_id = ${KIND.applicationId}; PRAGMA user_version = ${KIND.schemaVersion}`,
  );
  return db;
}

function opened(file: string): DatabaseSync {
  const db = locked(file);
  try {
    refuseForeign(db, KIND, { file, shown: `the state of an audit ${file}` });
    const bytes = numberOf(db, 'PRAGMA page_count') * numberOf(db, 'PRAGMA page_size');
    if (versionOf(db) !== KIND.schemaVersion || bytes !== sizeOf(file)) throw new StateDamaged(file);
    chmodSync(file, 0o600);
    return db;
  } catch (error) {
    db.close();
    throw error;
  }
}

function locked(path: string): DatabaseSync {
  const db = new DatabaseSync(path, { timeout: 0 });
  try {
    db.exec('PRAGMA locking_mode = EXCLUSIVE; PRAGMA synchronous = EXTRA; PRAGMA cell_size_check = ON');
    db.exec('PRAGMA temp_store = FILE; PRAGMA cache_size = -16384');
    db.exec('BEGIN EXCLUSIVE');
    return db;
  } catch (error) {
    db.close();
    throw error;
  }
}

function remove(path: string): void {
  for (const each of [path, `${path}-journal`]) rmSync(each, { force: true });
}

function stateError(file: string, error: unknown): unknown {
  if (isSqliteBusy(error)) return new OperatorError(`${file} is used by another audit`, { cause: error });
  // Text that is no JSON any more, and values of other types.
  if (error instanceof StateDamaged || error instanceof SyntaxError || error instanceof RangeError)
    return new OperatorError(`${file} ${DAMAGED}`, { cause: error });
  return sqliteFileError(file, error, DAMAGED);
}
