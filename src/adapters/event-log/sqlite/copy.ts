// A copy of the embedded log as it is at one moment, while processes append to it.
import { existsSync } from 'node:fs';
import { backup, DatabaseSync } from 'node:sqlite';
import { REMEDY } from '#src/domain/damage.ts';
import { OperatorError } from '#src/lib/operator-error.ts';
import { isSqliteUnreadable, retryWhileBusy, sqliteFileError } from '#src/lib/sqlite-error.ts';

const LOCK_MS = 5000;

/** All pages in one step, which is one read transaction: a copy in several begins again with each append. */
const ALL_PAGES = 2 ** 31 - 1;

/**
 * Writes the events that are committed now to the new file `copy`, page by page, damaged ones too; appends continue
 * meanwhile. Not synced yet. Throws `OperatorError` if the log is known to be damaged, and if the disk is full.
 */
export async function copyLogFile(file: string, copy: string): Promise<void> {
  const damaged = `is damaged, and a copy could lack events: ${REMEDY.short}`;
  if (existsSync(`${file}.damaged`)) throw new OperatorError(`event log ${file} ${damaged}`);
  const db = new DatabaseSync(file, { readOnly: true, timeout: 0 });
  try {
    await retryWhileBusy(() => db.prepare('SELECT 1 FROM sqlite_schema').get(), LOCK_MS);
    await backup(db, copy, { rate: ALL_PAGES });
  } catch (error) {
    if (isSqliteUnreadable(error)) throw new OperatorError(`event log ${file} ${damaged}`, { cause: error });
    throw sqliteFileError(copy, error);
  } finally {
    db.close();
  }
}
