// SQLite's lock on a file beside another. The kernel releases it when the owner's process ends, also after a crash.
import { DatabaseSync } from 'node:sqlite';
import { isSqliteBusy, sqliteFileError } from '../sqlite-error.ts';
import { createPrivateFile } from './durable.ts';

export type FileLock = {
  readonly file: string;
  release(): void;
};

export type FileLockOptions = {
  /** Blocks this thread for so long at most. */
  readonly timeoutMs?: number;
  /** Called after the lock file was created, with mode 0600: no other user can lock it. */
  readonly onCreate?: (file: string) => void;
};

/** Locks `path` among processes; null if another has the lock. Throws what the system does, `OperatorError` among it. */
export function acquireFileLock(
  path: string,
  { timeoutMs = 0, onCreate }: FileLockOptions = {},
): FileLock | null {
  const file = `${path}.lock`;
  if (createPrivateFile(file)) onCreate?.(file);
  let lock: DatabaseSync | null = null;
  try {
    const held = new DatabaseSync(file, { timeout: timeoutMs });
    lock = held;
    held.exec('BEGIN EXCLUSIVE');
    return { file, release: () => held.close() };
  } catch (error) {
    lock?.close();
    if (isSqliteBusy(error)) return null;
    throw sqliteFileError(file, error);
  }
}
