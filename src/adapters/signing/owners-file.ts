// Files with private keys: readable by their owner alone, created and replaced whole.
import { randomUUID } from 'node:crypto';
import {
  closeSync,
  fchownSync,
  fstatSync,
  fsyncSync,
  linkSync,
  mkdirSync,
  openSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { dirname } from 'node:path';
import process from 'node:process';
import { flush, withFile } from '#src/lib/files/durable.ts';
import { OperatorError } from '#src/lib/operator-error.ts';
import { systemCode } from '#src/lib/system-error.ts';

export type KeyFileFault =
  | 'key_file_missing'
  | 'key_file_exists'
  | 'key_file_readable_by_others'
  | 'key_file_malformed'
  | 'key_file_busy'
  | 'key_file_unusable';

/** The key file cannot be used. The message names the file and contains no part of its content. */
export class KeyFileError extends OperatorError {
  readonly code: KeyFileFault;
  constructor(code: KeyFileFault, path: string, problem: string, cause?: unknown) {
    super(`key file ${path} ${problem}`, { cause });
    this.code = code;
  }
}

export type Owner = { readonly uid: number; readonly gid: number };

/** `ifMissing`: what the operator can do then. Throws `KeyFileError`. The mode is read from the open descriptor, so that the file cannot be replaced in between. */
export function readOwnersFile(path: string, ifMissing: string) {
  const fd = openForReading(path, ifMissing);
  try {
    const stat = fstatSync(fd);
    if (!stat.isFile()) throw new KeyFileError('key_file_unusable', path, 'is not a file');
    if ((stat.mode & 0o077) !== 0) {
      throw new KeyFileError('key_file_readable_by_others', path, 'is open to others: chmod 600 it');
    }
    const { uid, gid } = stat;
    return { text: readFileSync(fd, 'utf8'), owner: { uid, gid } satisfies Owner };
  } finally {
    closeSync(fd);
  }
}

function openForReading(path: string, ifMissing: string): number {
  try {
    return openSync(path, 'r');
  } catch (error) {
    const code = systemCode(error) ?? 'unknown';
    if (code === 'ENOENT') throw new KeyFileError('key_file_missing', path, `is not there: ${ifMissing}`);
    throw new KeyFileError('key_file_unusable', path, `cannot be opened (${reasonOf(path, code)})`, error);
  }
}

/** Writes a temporary file beside `path`, mode 0600 and flushed; `move` moves it to its name. `owner` null: unchanged. */
export function writeWhole(
  path: string,
  text: string,
  owner: Owner | null,
  move: (temporary: string) => void,
): void {
  const temporary = `${path}.${randomUUID()}.new`;
  try {
    writeFileSync(temporary, text, { flag: 'wx', mode: 0o600, flush: true });
    if (owner !== null) setOwner(temporary, owner);
    move(temporary);
    flush(dirname(path));
  } finally {
    try {
      rmSync(temporary, { force: true });
    } catch {
      // The same fault prevented its creation, and that error is thrown.
    }
  }
}

/** A file that an operator changes as root remains the service's. */
export function setOwner(path: string, owner: Owner): void {
  withFile(path, 'r+', (fd) => {
    const { uid, gid } = fstatSync(fd);
    if (uid === owner.uid && gid === owner.gid) return;
    fchownSync(fd, owner.uid, owner.gid);
    fsyncSync(fd);
  });
}

/**
 * Creates the file with this text, mode 0600, atomically: it is linked to its name, which fails if the name exists. Throws
 * `KeyFileError`, `key_file_exists`.
 */
export function createOwnersFile(path: string, text: string): void {
  asKeyFileError(path, 'made', () => {
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
    writeWhole(path, text, null, (temporary) => {
      try {
        linkSync(temporary, path);
      } catch (error) {
        if (systemCode(error) === 'EEXIST')
          throw new KeyFileError('key_file_exists', path, 'is there already');
        throw error;
      }
    });
  });
}

export function asKeyFileError<T>(path: string, verb: string, work: () => T): T {
  try {
    return work();
  } catch (error) {
    if (error instanceof KeyFileError) throw error;
    throw new KeyFileError(
      'key_file_unusable',
      path,
      `cannot be ${verb} (${reasonOf(path, systemCode(error) ?? 'unknown')})`,
      error,
    );
  }
}

/** The code, and what the operator can do about it. */
function reasonOf(path: string, code: string): string {
  if (code === 'ENOSPC') return 'the disk is full';
  if (code === 'EROFS') return 'read-only file system';
  if (code !== 'EACCES' && code !== 'EPERM') return code;
  const user = `${code}: this process runs as user id ${process.geteuid?.()}`;
  const owner = statSync(path, { throwIfNoEntry: false })?.uid;
  return owner === undefined
    ? `${user}, correct the folder's owner`
    : `${user}, and the file belongs to ${owner}; correct its owner, or its mode to 0600`;
}

export const isKeyFileError = (error: unknown, code: KeyFileFault): boolean =>
  error instanceof KeyFileError && error.code === code;
