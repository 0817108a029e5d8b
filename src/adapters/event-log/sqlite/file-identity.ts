// Whether the open file is still the one at its path. What is written to a file that was removed or replaced is lost when
// the process ends.
import { type BigIntStats, statSync } from 'node:fs';

/** The log's file, or its write-ahead log, was removed or replaced while it was open. */
export class FileReplaced extends Error {
  constructor(file: string) {
    super(`${file} was removed or replaced while it was open`);
    this.name = 'FileReplaced';
  }
}

/** A function that throws `FileReplaced` once that has happened. Called right after the file was opened. */
export function fileIdentity(file: string): () => void {
  const wal = `${file}-wal`;
  const opened = identityOf(file);
  /** SQLite makes it with the first write, or shares that of another process. */
  let openedWal = identityOf(wal);
  return () => {
    if (identityOf(file) !== opened) throw new FileReplaced(file);
    const now = identityOf(wal);
    openedWal ??= now;
    if (now !== openedWal) throw new FileReplaced(wal);
  };
}

function identityOf(path: string): string | null {
  const stat: BigIntStats | undefined = statSync(path, { bigint: true, throwIfNoEntry: false });
  return stat === undefined ? null : `${stat.dev} ${stat.ino}`;
}
