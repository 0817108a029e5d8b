// What kind of file a SQLite database is, by its application id and schema version (sqlite.org/fileformat2 §1.3).
import type { DatabaseSync } from 'node:sqlite';
import { OperatorError } from '../operator-error.ts';

export type SqliteKind = {
  /** With its article, as a person calls it. */
  readonly name: string;
  readonly applicationId: number;
  readonly schemaVersion: number;
};

/**
 * Throws an `OperatorError` unless the database is empty, or of this kind and of a version that this program knows. `shown`:
 * the file, as messages name it.
 */
export function refuseForeign(
  db: DatabaseSync,
  { name, applicationId, schemaVersion }: SqliteKind,
  { file, shown }: { readonly file: string; readonly shown: string },
): void {
  const version = versionOf(db);
  // In this order: another process that creates the file gives it its tables and its id in one commit.
  const isEmpty = numberOf(db, 'SELECT count(*) FROM sqlite_schema') === 0;
  const isKnown = numberOf(db, 'PRAGMA application_id') === applicationId;
  if (!isKnown && !isEmpty) throw new OperatorError(`${file} is a database, but not ${name}`);
  if (version > schemaVersion)
    throw new OperatorError(
      `${shown} has schema version ${version}; this program supports up to ${schemaVersion}`,
    );
}

/** 0: it has no tables yet. */
export const versionOf = (db: DatabaseSync): number => numberOf(db, 'PRAGMA user_version');

/** The one number that a query answers. */
export function numberOf(db: DatabaseSync, sql: string): number {
  const row: object = db.prepare(sql).get() ?? {};
  return Number(Object.values(row)[0]);
}
