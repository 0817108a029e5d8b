// The key file on disk: read only where nobody but its owner can, written beside, flushed, and put in its place whole.
import { randomUUID } from 'node:crypto';
import {
  closeSync,
  fchownSync,
  fstatSync,
  fsyncSync,
  openSync,
  readFileSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs';
import { dirname } from 'node:path';
import { KeyFileError, systemCode } from './key-file-error.ts';

export type Owner = { readonly uid: number; readonly gid: number };

export type OwnersFile = { readonly text: string; readonly owner: Owner; readonly stamp: string };

/**
 * Throws `KeyFileError`. The mode is read from the file that was opened: nobody can swap it in between. `stamp`: another
 * one where the file was written to or replaced since.
 */
export function readOwnersFile(path: string): OwnersFile {
  const fd = openForReading(path);
  try {
    const stat = fstatSync(fd);
    if (!stat.isFile()) throw new KeyFileError('key_file_unusable', path, 'is not a file');
    if ((stat.mode & 0o077) !== 0) {
      throw new KeyFileError('key_file_readable_by_others', path, 'is open to others: chmod 600 it');
    }
    const { uid, gid, ino, size, mtimeMs, ctimeMs } = stat;
    const stamp = [ino, size, mtimeMs, ctimeMs].join(' ');
    return { text: readFileSync(fd, 'utf8'), owner: { uid, gid }, stamp };
  } finally {
    closeSync(fd);
  }
}

function openForReading(path: string): number {
  try {
    return openSync(path, 'r');
  } catch (error) {
    if (systemCode(error) !== 'ENOENT')
      throw new KeyFileError('key_file_unusable', path, `cannot be opened (${systemCode(error)})`, error);
    const next = 'correct SIGNING_KEYS_FILE, or make one with `relay keys init`';
    throw new KeyFileError('key_file_missing', path, `is not there: ${next}`);
  }
}

/**
 * Writes the text to a file of its own beside `path`, mode 0600 and flushed, and lets `place` put that in its place;
 * `owner`: whose it is to be, where that is not who runs this.
 */
export function writeWhole(
  path: string,
  text: string,
  place: (beside: string) => void,
  owner: Owner | null = null,
): void {
  const beside = `${path}.${randomUUID()}.new`;
  try {
    writeFileSync(beside, text, { flag: 'wx', mode: 0o600, flush: true });
    if (owner !== null) giveTo(beside, owner);
    place(beside);
    flushDirectory(dirname(path));
  } finally {
    removeIfThere(beside);
  }
}

/** What an operator writes as root stays the service's. */
export function giveTo(path: string, owner: Owner): void {
  const fd = openSync(path, 'r+');
  try {
    const { uid, gid } = fstatSync(fd);
    if (uid === owner.uid && gid === owner.gid) return;
    fchownSync(fd, owner.uid, owner.gid);
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
}

function flushDirectory(path: string): void {
  const fd = openSync(path, 'r');
  try {
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
}

/** What keeps it from being removed kept it from being made, and that is the error to tell. */
function removeIfThere(path: string): void {
  try {
    unlinkSync(path);
  } catch {}
}
