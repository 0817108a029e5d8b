// One process at a time writes an export: a lock file next to it, which the kernel frees when the process ends.
import { rmSync } from 'node:fs';
import { acquireFileLock, createLockFile, type FileLock } from '#src/adapters/signing/file-lock.ts';

/** Returns null at once if another process writes `path`. Throws if no lock file can be made. */
export function lockExport(path: string): FileLock | null {
  const file = `${path}.lock`;
  createLockFile(file);
  const lock = acquireFileLock(file, 0);
  if (lock === null) return null;
  return {
    release() {
      rmSync(file, { force: true });
      lock.release();
    },
  };
}
