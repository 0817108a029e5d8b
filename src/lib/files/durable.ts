// Files that a crash leaves whole: the old content or the new one. All functions throw what the system does.
import {
  closeSync,
  fsyncSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { dirname } from 'node:path';
import { systemCode } from '../system-error.ts';

/** Opens the file or folder, runs `work`, and closes it. A file that this creates has mode 0600. */
export function withFile<T>(path: string, flags: string, work: (fd: number) => T): T {
  const fd = openSync(path, flags, 0o600);
  try {
    return work(fd);
  } finally {
    closeSync(fd);
  }
}

/** Returns after the content of the file, or the names in the folder, are on the disk. */
export const flush = (path: string): void => withFile(path, 'r', fsyncSync);

/** Replaces the content of a file, or creates it with mode 0600; durable when it returns. */
export function replaceFile(path: string, content: string): void {
  const beside = `${path}.new`;
  try {
    writeFileSync(beside, content, { mode: 0o600, flush: true });
    renameSync(beside, path);
  } finally {
    rmSync(beside, { force: true });
  }
  flush(dirname(path));
}

/** The text of the file; null if there is none. */
export function findText(path: string): string | null {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    if (systemCode(error) === 'ENOENT') return null;
    throw error;
  }
}

/** In bytes; null if there is no such file. A file that this process may not look at is not taken for a missing one. */
export const sizeOf = (path: string): number | null =>
  statSync(path, { throwIfNoEntry: false })?.size ?? null;

/**
 * Creates an empty file with mode 0600; false if it exists. An existing file is not opened: closing any descriptor of a
 * SQLite database drops every POSIX lock of this process on it (sqlite.org/howtocorrupt §2.2).
 */
export function createPrivateFile(path: string): boolean {
  try {
    closeSync(openSync(path, 'wx', 0o600));
    return true;
  } catch (error) {
    if (systemCode(error) === 'EEXIST') return false;
    throw error;
  }
}
