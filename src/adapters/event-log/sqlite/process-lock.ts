// A lock file beside the log's file, locked while the process runs: exclusively, so that no other process serves this log,
// or shared with other processes. The kernel releases it however the process ends.

import { mkdirSync } from 'node:fs';
import { dirname } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { OperatorError } from '#src/lib/operator-error.ts';
import { isSqliteBusy, retryWhileBusy, sqliteFileError } from '#src/lib/sqlite-error.ts';

/** `alone`: no other process may serve this log. `shared`: other processes may, with a shared lock too. */
export type ProcessLockMode = 'alone' | 'shared';

/** Another process serves this log, and one of the two requires it `alone`. */
export class LogInUse extends OperatorError {
  constructor(wanted: ProcessLockMode) {
    super(
      wanted === 'alone'
        ? 'other processes serve this event log: embedded read models are for a single process, set DATABASE_URL'
        : 'a process with embedded read models serves this event log alone: set DATABASE_URL for that process too',
    );
  }
}

/** Long enough for a previous process to shut down. */
const WAIT_MS = 1000;

/** `file`: the lock file. Uses SQLite's locks: shared for a reader, exclusive for an exclusive transaction. */
export async function acquireProcessLock(file: string, mode: ProcessLockMode): Promise<{ release(): void }> {
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
  let lock: DatabaseSync | null = null;
  try {
    const opened = new DatabaseSync(file, { timeout: 0 });
    lock = opened;
    await retryWhileBusy(() => lockFile(opened, mode), WAIT_MS);
    return { release: () => opened.close() };
  } catch (error) {
    lock?.close();
    if (isSqliteBusy(error)) throw new LogInUse(mode);
    throw sqliteFileError(file, error, 'is no lock file: delete it');
  }
}

function lockFile(lock: DatabaseSync, mode: ProcessLockMode): void {
  if (mode === 'alone') {
    lock.exec('BEGIN EXCLUSIVE');
    return;
  }
  if (!lock.isTransaction) lock.exec('BEGIN');
  lock.prepare('SELECT count(*) FROM sqlite_schema').get();
}
