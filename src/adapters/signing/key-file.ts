// The key file: private signing keys and the one HMAC secret, on disk for their owner alone.
// It decides how one comes into being and how it is changed; which key signs and since when, the log tells.
import { linkSync, mkdirSync, realpathSync, renameSync } from 'node:fs';
import { dirname } from 'node:path';
import type { KeyFileChange } from '../../ports/key-store.ts';
import { readOwnersFile, writeWhole } from './key-file-disk.ts';
import { isKeyFileError, KeyFileError, systemCode } from './key-file-error.ts';
import { holdAlone } from './key-file-lock.ts';
import { changedText, freshText, type KeyFile, parseKeyFile } from './key-file-text.ts';

/**
 * Reads the file, or makes it where it is missing and `create` is true (the embedded default only). Processes that
 * start at once all end with the one file that won. Throws `KeyFileError`.
 */
export function openKeyFile(options: { readonly path: string; readonly create: boolean }): KeyFile {
  const { path, create } = options;
  try {
    return readKeyFile(path);
  } catch (error) {
    if (!create || !isKeyFileError(error, 'key_file_missing')) throw error;
  }
  try {
    createKeyFile(path);
  } catch (error) {
    if (!isKeyFileError(error, 'key_file_exists')) throw error;
  }
  return readKeyFile(path);
}

/** Throws `KeyFileError`: also where group or others may read the file. */
export function readKeyFile(path: string): KeyFile {
  return parseKeyFile(path, readOwnersFile(path).text);
}

/**
 * Makes a file with one active key for receipts, one for checkpoints and a fresh secret, mode 0600, whole or not at all:
 * it is linked to its name, which fails where the name is taken. Throws `KeyFileError`, `key_file_exists`.
 */
export function createKeyFile(path: string): void {
  asFault(path, 'made', () => {
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
    writeWhole(path, freshText(), (beside) => linkTo(beside, path));
  });
}

function linkTo(beside: string, path: string): void {
  try {
    linkSync(beside, path);
  } catch (error) {
    if (systemCode(error) === 'EEXIST') throw new KeyFileError('key_file_exists', path, 'is there already');
    throw error;
  }
}

/**
 * Changes the file as it stands at that moment, whole or not at all, and answers what then stands there: a lock beside
 * it lets one process after another in, so none loses what another added. `change` answers null where nothing is to be
 * done. Mode and owner stay; a symbolic link stays one. Waits for the lock for some seconds, blocking this thread.
 * Throws `KeyFileError`.
 */
export function updateKeyFile(path: string, change: (file: KeyFile) => KeyFileChange | null): KeyFile {
  return asFault(path, 'changed', () => {
    const { owner } = readOwnersFile(path);
    const place = realpathSync(path);
    return holdAlone(place, owner, () => {
      const { text } = readOwnersFile(place);
      const wanted = change(parseKeyFile(path, text));
      if (wanted === null) return parseKeyFile(path, text);
      const changed = changedText(path, text, wanted);
      const file = parseKeyFile(path, changed);
      writeWhole(place, changed, (beside) => renameSync(beside, place), owner);
      return file;
    });
  });
}

function asFault<T>(path: string, verb: string, work: () => T): T {
  try {
    return work();
  } catch (error) {
    if (error instanceof KeyFileError) throw error;
    throw new KeyFileError('key_file_unusable', path, `cannot be ${verb} (${systemCode(error)})`, error);
  }
}
