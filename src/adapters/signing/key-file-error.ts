// What can be wrong with a key file.

export type KeyFileFault =
  | 'key_file_missing'
  | 'key_file_exists'
  | 'key_file_readable_by_others'
  | 'key_file_malformed'
  | 'key_file_busy'
  | 'key_file_unusable';

/** The key file cannot be used as it is. The message names the file and never shows what is in it. */
export class KeyFileError extends Error {
  readonly code: KeyFileFault;
  constructor(code: KeyFileFault, path: string, problem: string, cause?: unknown) {
    super(`key file ${path} ${problem}`, { cause });
    this.name = 'KeyFileError';
    this.code = code;
  }
}

export const isKeyFileError = (error: unknown, code: KeyFileFault): boolean =>
  error instanceof KeyFileError && error.code === code;

/** `ENOENT` and the like. */
export const systemCode = (error: unknown): string =>
  error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : 'unknown';
