// A copy of the embedded log as it is at one moment, while processes append to it.
import { existsSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { REMEDY } from '#src/domain/damage.ts';
import { OperatorError } from '#src/lib/operator-error.ts';
import { isSqliteUnreadable, retryWhileBusy, sqliteFileError } from '#src/lib/sqlite-error.ts';

const LOCK_MS = 5000;

/**
 * Writes the events that are committed now to the new file `copy`, in one read transaction (VACUUM INTO): appends continue
 * meanwhile. Not synced yet. Blocks this thread. Throws `OperatorError` for a damaged log, and if the disk is full.
 */
export async function copyLogFile(file: string, copy: string): Promise<void> {
  const damaged = `is damaged, and a copy could lack events: ${REMEDY.short}`;
  if (existsSync(`${file}.damaged`)) throw new OperatorError(`event log ${file} ${damaged}`);
  const db = new DatabaseSync(file, { readOnly: true, timeout: 0 });
  try {
    await retryWhileBusy(() => db.prepare('VACUUM INTO ?').run(copy), LOCK_MS);
  } catch (error) {
    if (isSqliteUnreadable(error)) throw new OperatorError(`event log ${file} ${damaged}`, { cause: error });
    throw sqliteFileError(copy, error);
  } finally {
    db.close();
  }
}
