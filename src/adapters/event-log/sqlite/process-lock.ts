// A lock beside the log's file, held as long as the process runs. Alone it proves that no other service process runs;
// shared it admits others that share theirs. The kernel releases it, however a process ends.
import { mkdirSync } from 'node:fs';
import { dirname } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { isBusy, retryWhileBusy } from './file.ts';

export type Tenancy = { release(): void };

/** `alone`: no other process may serve this log. `shared`: others may that also share it. */
export type TenancyKind = 'alone' | 'shared';

/** Another process serves this log, and one of the two needs it alone. */
export class LogInUse extends Error {
  constructor(wanted: TenancyKind) {
    super(
      wanted === 'alone'
        ? 'other processes serve this event log: embedded read models are for a single process, set DATABASE_URL'
        : 'a process with embedded read models serves this event log for itself: set DATABASE_URL for that one too',
    );
    this.name = 'LogInUse';
  }
}

/** Long enough for a predecessor that is shutting down. */
const PATIENCE_MS = 1000;

/** `file`: of the lock, not of the log. SQLite's own locks: a reader's is shared, an exclusive transaction's is alone. */
export async function takeTenancy(file: string, kind: TenancyKind): Promise<Tenancy> {
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
  const lock = new DatabaseSync(file, { timeout: 0 });
  try {
    await retryWhileBusy(() => take(lock, kind), PATIENCE_MS);
    return { release: () => lock.close() };
  } catch (error) {
    lock.close();
    throw isBusy(error) ? new LogInUse(kind) : error;
  }
}

function take(lock: DatabaseSync, kind: TenancyKind): void {
  if (kind === 'alone') {
    lock.exec('BEGIN EXCLUSIVE');
    return;
  }
  if (!lock.isTransaction) lock.exec('BEGIN');
  lock.prepare('SELECT count(*) FROM sqlite_schema').get();
}
