// The embedded read models' directory: whose it is, and whether its files can be believed. PGlite neither locks its
// directory nor syncs its files, so both are done here; the rows can always be replayed from the log.
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';
import { DatabaseSync } from 'node:sqlite';
import { flush } from '#src/lib/files/durable.ts';
import { isSqliteBusy, sqliteFileError } from '#src/lib/sqlite-error.ts';
import { ReadStoreInUse } from '#src/ports/read-store.ts';

export type PgliteDirectory = {
  /** PGlite's own directory. */
  readonly files: string;
  /** true: closed in order, by this schema; the files are whole and on the disk. */
  intact(): boolean;
  /** Durably marks the files as being written: a process that finds this mark discards them. */
  markOpen(): void;
  /** Syncs every file, then durably marks them as intact. Call it after PGlite has closed. */
  markIntact(): void;
  /** Replaces the files with new ones without any row, which `make` writes. */
  renew(make: (files: string) => Promise<void>): Promise<void>;
  /** Frees the directory for another process. */
  release(): void;
};

/**
 * Takes the directory for this process or throws `ReadStoreInUse`. The lock is SQLite's exclusive one on a small file:
 * the kernel frees it when its holder dies, however it dies. (A file with a pid in it blocks the restart in a
 * container, where the pid is the same again.)
 */
export function takePgliteDirectory(directory: string, schema: string): PgliteDirectory {
  mkdirSync(directory, { recursive: true, mode: 0o700 });
  const files = join(directory, 'pglite');
  const pidFile = join(directory, 'owner.pid');
  const state = takeLock(join(directory, 'lock.sqlite'), pidFile);
  writeFileSync(pidFile, `${process.pid}\n`);
  const found = state.prepare('SELECT schema FROM whole WHERE part = ?');
  const mark = state.prepare('INSERT OR REPLACE INTO whole (part, schema) VALUES (?, ?)');
  const unmark = state.prepare('DELETE FROM whole WHERE part = ?');
  return {
    files,
    intact: () => found.get('files')?.schema === schema,
    markOpen: () => void unmark.run('files'),
    markIntact() {
      syncTree(files);
      mark.run('files', schema);
    },
    async renew(make) {
      rmSync(files, { recursive: true, force: true });
      await make(files);
    },
    release: () => state.close(),
  };
}

/** Holds the lock until the connection closes: in exclusive locking mode SQLite keeps it after the commit. */
function takeLock(path: string, pidFile: string): DatabaseSync {
  for (const lastTry of [false, true]) {
    const state = openState(path);
    try {
      state.exec('PRAGMA busy_timeout = 200; PRAGMA locking_mode = EXCLUSIVE; PRAGMA synchronous = FULL');
      state.exec('BEGIN EXCLUSIVE');
      // What is whole, on the disk and at rest; a part that is not here is not to be believed.
      state.exec('CREATE TABLE IF NOT EXISTS whole (part TEXT PRIMARY KEY, schema TEXT NOT NULL)');
      state.exec('COMMIT');
      return state;
    } catch (error) {
      state.close();
      if (isSqliteBusy(error)) throw new ReadStoreInUse(readPid(pidFile));
      const named = sqliteFileError(path, error);
      if (lastTry || named !== error) throw named;
      // No database any more: nothing in it is worth more than a replay.
      rmSync(path, { force: true });
    }
  }
  throw new Error('unreachable');
}

function openState(path: string): DatabaseSync {
  try {
    return new DatabaseSync(path);
  } catch (error) {
    throw sqliteFileError(path, error);
  }
}

function readPid(pidFile: string): number | null {
  try {
    const pid = Number.parseInt(readFileSync(pidFile, 'utf8'), 10);
    return Number.isNaN(pid) ? null : pid;
  } catch {
    return null;
  }
}

function syncTree(directory: string): void {
  for (const entry of readdirSync(directory, { withFileTypes: true })) {
    const path = join(directory, entry.name);
    if (entry.isDirectory()) syncTree(path);
    else if (entry.isFile()) flush(path);
  }
  flush(directory);
}
