// What an error of node:sqlite states. Deno omits the code where the failing call was exec(), hence the messages.

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
