// Who may write an export: a lock beside the file, for as long as it is written, that ends with the process.
import { realpathSync, rmSync, statSync } from 'node:fs';
import { type FileLock, makeLockFile, takeFileLock } from '#src/adapters/signing/file-lock.ts';

/** `path`: of the export, there already. At once; null: another process writes it. Throws where no lock can be made. */
export function lockExport(path: string): FileLock | null {
  const file = `${realpathSync(path)}.relay-lock`;
  for (;;) {
    makeLockFile(file);
    const before = inodeOf(file);
    const lock = takeFileLock(file, 0);
    if (lock === null) return null;
    if (before !== null && inodeOf(file) === before) return removing(file, lock);
    // Its last holder took it away meanwhile, and others may have the next one.
    lock.release();
  }
}

const inodeOf = (file: string): bigint | null =>
  statSync(file, { bigint: true, throwIfNoEntry: false })?.ino ?? null;

/** Taken away while it is held: who opened it before finds out. */
const removing = (file: string, lock: FileLock): FileLock => ({
  release() {
    rmSync(file, { force: true });
    lock.release();
  },
});
