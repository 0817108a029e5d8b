// What an error of node:sqlite states. Deno omits the code where the failing call was exec(), hence the messages.
import { OperatorError } from './operator-error.ts';
import { sleep } from './time.ts';

/** The primary result code of SQLite; null if the error is not SQLite's, or has no code. */
function resultCode(error: Error): number | null {
  return 'errcode' in error && typeof error.errcode === 'number' ? error.errcode & 0xff : null;
}

const stating =
  (codes: readonly number[], words: RegExp) =>
  (error: unknown): error is Error => {
    if (!(error instanceof Error)) return false;
    const code = resultCode(error);
    return code === null ? words.test(error.message) : codes.includes(code);
  };

/** Another connection holds the lock that the call needs: SQLITE_BUSY, or SQLITE_PROTOCOL, a lost race for it. */
export const isSqliteBusy = stating([5, 15], /database is locked|locking protocol/);

/** SQLITE_CORRUPT and SQLITE_NOTADB: the file is malformed, such as one restored beside the -wal of another. */
export const isSqliteDamage = stating([11, 26], /database disk image is malformed|file is not a database/);

/** SQLITE_PERM, SQLITE_READONLY, SQLITE_CANTOPEN: the system does not let this process use the file. */
export const isSqliteDenied = stating(
  [3, 8, 14],
  /readonly database|unable to open database file|access permission denied/,
);

/** Damage, as a read finds it. Also SQLITE_TOOBIG, of a damaged length, and a number beyond those of JavaScript. */
export const isSqliteUnreadable = (error: unknown): boolean =>
  isSqliteDamage(error) || isTooBig(error) || error instanceof RangeError;
const isTooBig = stating([18], /string or blob too big/);

/** SQLITE_FULL. */
const isSqliteFull = stating([13], /database or disk is full/);

/** SQLITE_IOERR: among others a full disk, where the -shm cannot grow. */
const isSqliteIoError = stating([10], /disk I\/O error/);

/**
 * The error for the operator if SQLite cannot use the file at `path` for a reason of the system, or because it is damaged
 * (`ifDamaged`: what to do then); any other error is returned as it is.
 */
export function sqliteFileError(path: string, cause: unknown, ifDamaged?: string): unknown {
  const problem = isSqliteDamage(cause) ? ifDamaged : systemProblem(cause);
  return problem == null ? cause : new OperatorError(`${path} ${problem}`, { cause });
}

function systemProblem(error: unknown): string | null {
  if (isSqliteDenied(error))
    return 'cannot be opened for writing: correct owner and mode of the file, of its -wal and -shm, and of their folder';
  if (isSqliteFull(error)) return 'cannot be written: the disk is full';
  return isSqliteIoError(error) ? 'cannot be read or written: the disk is full, or reports an error' : null;
}

/** Repeats `run` while the file is locked, without blocking the event loop; throws the lock's error after `limitMs`. */
export async function retryWhileBusy<T>(run: () => T, limitMs: number): Promise<T> {
  const end = performance.now() + limitMs;
  for (let tries = 0; ; tries++) {
    try {
      return run();
    } catch (error) {
      if (!isSqliteBusy(error) || performance.now() >= end) throw error;
    }
    await pauseBetweenTries(tries);
  }
}

/** 1 to 2 ms at first, 1 to 12 ms later: a group of another process takes about 1 ms. */
export function pauseBetweenTries(tries: number): Promise<void> {
  return sleep(1 + Math.random() * Math.min(1 + tries, 11));
}
