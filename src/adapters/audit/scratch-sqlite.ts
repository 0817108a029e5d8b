// Scratch storage of an audit in SQLite, written in batches: in an unlinked file that is freed when the process ends, where
// what fits into the first batch is not written, or in the file of a state (state-sqlite.ts).
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { crc32 } from 'node:zlib';
import { type Json, jsonLength } from '../../domain/canonical-json.ts';
import type { AuditScratch } from '../../ports/audit-scratch.ts';
import { NOTES_SCHEMA, notedValues } from './noted-values.ts';
import { RUNS_SCHEMA, sortedRuns } from './sorted-runs.ts';
import { StateDamaged } from './state-damaged.ts';

/** Limits of what is buffered before one transaction writes it: changed keys, and characters of their JSON. */
const BUFFERED_MAX = { changes: 65_536, characters: 16 * 1024 * 1024 };

/** Throws if no file can be created in `folder`. */
export function sqliteScratch<T extends Json>(
  folder = tmpdir(),
  bufferedMax = BUFFERED_MAX,
): AuditScratch<T> {
  const { db, remove } = openUnlinked(folder);
  db.exec(SCRATCH_SCHEMA);
  const rows = scratchIn<T>(db, { bufferedMax, isState: false });
  return {
    ...rows,
    close() {
      db.close();
      remove();
    },
  };
}

export const SCRATCH_SCHEMA = `
  ${RUNS_SCHEMA}
  CREATE TABLE open_keys (key TEXT PRIMARY KEY) STRICT, WITHOUT ROWID;
  ${NOTES_SCHEMA}
`;

type Options = {
  readonly bufferedMax?: typeof BUFFERED_MAX;
  /** It has the rows of earlier runs, and the caller commits. Each row has a checksum. */
  readonly isState: boolean;
};

/** The database has the tables of `SCRATCH_SCHEMA`. `flush` writes what is buffered. */
export function scratchIn<T extends Json>(
  db: DatabaseSync,
  { bufferedMax = BUFFERED_MAX, isState }: Options,
): Omit<AuditScratch<T>, 'close'> & { flush(): void } {
  const runs = sortedRuns(db, { isState, checksumBeside: () => listsChecksum(db) });
  const setOpen = db.prepare('INSERT OR IGNORE INTO open_keys (key) VALUES (?)');
  const setClosed = db.prepare('DELETE FROM open_keys WHERE key = ?');
  const openRange = db.prepare(
    'SELECT key FROM open_keys WHERE key >= ?1 AND key < ?2 AND key > ?3 ORDER BY key LIMIT ?4',
  );
  const { note, repeated, flush: flushNotes } = notedValues(db);
  /** Not written yet. */
  const buffer = new Map<string, Buffered<T>>();
  let characters = 0;
  let isWritten = !runs.isEmpty();

  function flush(): void {
    isWritten = true;
    if (buffer.size === 0) return;
    if (!isState) db.exec('BEGIN');
    const keys = [...buffer.keys()].sort();
    for (const key of keys) {
      if (buffer.get(key)?.isOpen) setOpen.run(key);
      else if (runs.mayContain(key)) setClosed.run(key);
    }
    runs.write(keys.map((key) => [key, JSON.stringify(buffer.get(key)?.value)] as const));
    if (!isState) db.exec('COMMIT');
    runs.merge();
    buffer.clear();
    characters = 0;
  }
  const flushIfFull = () => {
    if (buffer.size >= bufferedMax.changes || characters >= bufferedMax.characters) flush();
  };

  function get(key: string): T | null {
    const put = buffer.get(key);
    if (put !== undefined) return put.value;
    const text = isWritten ? runs.get(key) : null;
    return text === null ? null : JSON.parse(text);
  }

  function demand(key: string): T {
    const value = get(key);
    if (value === null) throw new StateDamaged(key);
    return value;
  }

  return {
    get,
    demand,
    put(key, value, added, isOpen = false) {
      const before = buffer.get(key);
      const size = before === undefined || added === undefined ? jsonLength(value) : before.size + added;
      characters += before === undefined ? key.length + size : size - before.size;
      buffer.set(key, { value, size, isOpen });
      flushIfFull();
    },
    *values(prefix) {
      if (!isWritten) {
        for (const key of keysOf(buffer, prefix)) yield get(key) as T;
        return;
      }
      flush();
      for (const text of runs.range(prefix, after(prefix))) yield JSON.parse(text);
    },
    open(prefix, last, max) {
      if (isWritten) flush();
      const keys = isWritten
        ? openRange.all(prefix, after(prefix), last ?? '', max).map(({ key }) => String(key))
        : keysOf(buffer, prefix)
            .filter((key) => buffer.get(key)?.isOpen && key > (last ?? ''))
            .slice(0, max);
      return keys.map((key) => ({ key, value: demand(key) }));
    },
    note,
    repeated,
    flush() {
      flush();
      flushNotes();
      runs.save();
    },
  };
}

/** Of the tables whose rows nothing else names: without one, what is open or repeated would not be reported. */
function listsChecksum(db: DatabaseSync): number {
  let sum = 0;
  for (const select of LISTS)
    for (const row of db.prepare(select).iterate()) sum = crc32(JSON.stringify(row), sum);
  return sum;
}

const LISTS = [
  'SELECT key FROM open_keys ORDER BY key',
  'SELECT rowid FROM notes ORDER BY rowid',
  'SELECT value, place FROM repeats ORDER BY rowid',
];

type Buffered<T> = { readonly value: T; readonly size: number; readonly isOpen: boolean };

const keysOf = (buffer: ReadonlyMap<string, unknown>, prefix: string): string[] =>
  [...buffer.keys()].filter((key) => key.startsWith(prefix)).sort();

/**
 * The file contains other people's payments, so it is unlinked as soon as it is open: the system frees it however the
 * process ends. Where an open file cannot be unlinked, `remove` deletes it at the end.
 */
function openUnlinked(folder: string) {
  const directory = mkdtempSync(join(folder, 'relay-audit-'));
  const remove = () => rmSync(directory, { recursive: true, force: true });
  try {
    const db = new DatabaseSync(join(directory, 'scratch.db'));
    // Nothing must survive a crash, no other process reads it, and a journal on disk would be a second file. (SQLite's
    // defensive mode, which is on here, does not accept journal_mode = OFF.)
    db.exec('PRAGMA journal_mode = MEMORY; PRAGMA synchronous = OFF; PRAGMA locking_mode = EXCLUSIVE');
    db.exec('PRAGMA temp_store = FILE; PRAGMA cache_size = -16384');
    try {
      remove();
    } catch {}
    return { db, remove };
  } catch (error) {
    remove();
    throw error;
  }
}

/** The least key after all keys with this prefix; its last character is ASCII. */
const after = (prefix: string): string =>
  prefix.slice(0, -1) + String.fromCharCode(prefix.charCodeAt(prefix.length - 1) + 1);
