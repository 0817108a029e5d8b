// A lock that the kernel frees however its holder ends: SQLite's own. A lock by a file's mere existence would outlive a
// holder that crashed.
import { closeSync, openSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';

export type FileLock = { release(): void };

/**
 * `file`: of the lock, there already, and no database. Blocks this thread for `patienceMs` at most; null: another process
 * holds on to it.
 */
export function takeFileLock(file: string, patienceMs: number): FileLock | null {
  const lock = new DatabaseSync(file, { timeout: patienceMs });
  try {
    lock.exec('BEGIN EXCLUSIVE');
    return { release: () => lock.close() };
  } catch (error) {
    lock.close();
    // Deno leaves SQLite's code out where the failing call was exec().
    if (error instanceof Error && error.message.includes('locked')) return null;
    throw error;
  }
}

/** Its owner's alone, so that no other user can hold it; false: it is there already. */
export function makeLockFile(file: string): boolean {
  try {
    closeSync(openSync(file, 'wx', 0o600));
    return true;
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'EEXIST') return false;
    throw error;
  }
}
