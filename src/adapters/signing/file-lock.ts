// SQLite's lock on a file. The kernel releases it when the owner's process ends, also after a crash.
import { closeSync, openSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';

export type FileLock = { release(): void };

/**
 * `file`: an existing lock file. Blocks this thread for `timeoutMs` at most; null if another process has the lock until
 * then.
 */
export function acquireFileLock(file: string, timeoutMs: number): FileLock | null {
  const lock = new DatabaseSync(file, { timeout: timeoutMs });
  try {
    lock.exec('BEGIN EXCLUSIVE');
    return { release: () => lock.close() };
  } catch (error) {
    lock.close();
    // Deno omits SQLite's code if the failing call was exec().
    if (error instanceof Error && error.message.includes('locked')) return null;
    throw error;
  }
}

/** Creates the file with mode 0600, so that no other user can lock it; false if it exists. */
export function createLockFile(file: string): boolean {
  try {
    closeSync(openSync(file, 'wx', 0o600));
    return true;
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'EEXIST') return false;
    throw error;
  }
}
