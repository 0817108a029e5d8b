// Who may change the key file: a lock beside it, which the kernel frees however its holder ends. A lock by a file's mere
// existence would outlive a holder that crashed.
import { closeSync, openSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { giveTo, type Owner } from './key-file-disk.ts';
import { KeyFileError, systemCode } from './key-file-error.ts';

/** Longer than all others together take, who hold it for some milliseconds each. */
const PATIENCE_MS = 5000;

/** Runs `work` while no other process does; throws `KeyFileError` `key_file_busy` where one holds on to it. */
export function holdAlone<T>(path: string, owner: Owner, work: () => T, patienceMs = PATIENCE_MS): T {
  const file = `${path}.lock`;
  makePrivate(file, owner);
  const lock = new DatabaseSync(file, { timeout: patienceMs });
  try {
    begin(lock, path);
    return work();
  } finally {
    lock.close();
  }
}

function begin(lock: DatabaseSync, path: string): void {
  try {
    lock.exec('BEGIN EXCLUSIVE');
  } catch (error) {
    // Deno leaves SQLite's code out where the failing call was exec().
    if (!(error instanceof Error) || !error.message.includes('locked')) throw error;
    throw new KeyFileError('key_file_busy', path, 'is being changed by another process: try again', error);
  }
}

/** Whoever owns the key file can take its lock again. */
function makePrivate(file: string, owner: Owner): void {
  try {
    closeSync(openSync(file, 'wx', 0o600));
    giveTo(file, owner);
  } catch (error) {
    if (systemCode(error) !== 'EEXIST') throw error;
  }
}
