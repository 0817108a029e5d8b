// Who may change the key file: a lock beside it, one process after another.
import { makeLockFile, takeFileLock } from './file-lock.ts';
import { giveTo, type Owner } from './key-file-disk.ts';
import { KeyFileError } from './key-file-error.ts';

/** Longer than all others together take, who hold it for some milliseconds each. */
const PATIENCE_MS = 5000;

/** Runs `work` while no other process does; throws `KeyFileError` `key_file_busy` where one holds on to it. */
export function holdAlone<T>(path: string, owner: Owner, work: () => T, patienceMs = PATIENCE_MS): T {
  const file = `${path}.lock`;
  // Whoever owns the key file can take its lock again.
  if (makeLockFile(file)) giveTo(file, owner);
  const lock = takeFileLock(file, patienceMs);
  if (lock === null)
    throw new KeyFileError('key_file_busy', path, 'is being changed by another process: try again');
  try {
    return work();
  } finally {
    lock.release();
  }
}
