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
  CREATE TABLE scratch (key TEXT PRIMARY KEY, value TEXT NOT NULL, checksum INTEGER) STRICT, WITHOUT ROWID;
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
  const read = db.prepare('SELECT value, checksum FROM scratch WHERE key = ?');
  const write = db.prepare('INSERT OR REPLACE INTO scratch (key, value, checksum) VALUES (?, ?, ?)');
  const range = db.prepare(
    'SELECT key, value, checksum FROM scratch WHERE key >= ?1 AND key < ?2 ORDER BY key',
  );
  const setOpen = db.prepare('INSERT OR IGNORE INTO open_keys (key) VALUES (?)');
  const setClosed = db.prepare('DELETE FROM open_keys WHERE key = ?');
  const openRange = db.prepare(
    'SELECT key FROM open_keys WHERE key >= ?1 AND key < ?2 AND key > ?3 ORDER BY key LIMIT ?4',
  );
  const { note, repeated, flush: flushNotes } = notedValues(db);
  /** Not written yet. */
  const buffer = new Map<string, Buffered<T>>();
  // Of earlier runs it is not known which keys are stored.
  const stored = isState ? { add: () => undefined, mayContain: () => true } : keyFilter();
  let characters = 0;
  let isWritten = isState;

  function flush(): void {
    isWritten = true;
    if (buffer.size === 0) return;
    if (!isState) db.exec('BEGIN');
    // In the index's order, so that each page is written once.
    for (const key of [...buffer.keys()].sort()) {
      const put = buffer.get(key);
      const text = JSON.stringify(put?.value);
      write.run(key, text, isState ? checksumOf(key, text) : null);
      if (put?.isOpen) setOpen.run(key);
      else if (stored.mayContain(key)) setClosed.run(key);
      stored.add(key);
    }
    if (!isState) db.exec('COMMIT');
    buffer.clear();
    characters = 0;
  }
  const flushIfFull = () => {
    if (buffer.size >= bufferedMax.changes || characters >= bufferedMax.characters) flush();
  };

  function parsedValue(key: string, row: Readonly<Record<string, unknown>>): T {
    const text = String(row.value);
    if (isState && row.checksum !== checksumOf(key, text)) throw new StateDamaged(key);
    return JSON.parse(text);
  }

  function get(key: string): T | null {
    const put = buffer.get(key);
    if (put !== undefined) return put.value;
    const row = isWritten && stored.mayContain(key) ? read.get(key) : undefined;
    return row === undefined ? null : parsedValue(key, row);
  }

  return {
    get,
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
      for (const row of range.iterate(prefix, after(prefix))) yield parsedValue(String(row.key), row);
    },
    open(prefix, last, max) {
      if (isWritten) flush();
      const keys = isWritten
        ? openRange.all(prefix, after(prefix), last ?? '', max).map(({ key }) => String(key))
        : keysOf(buffer, prefix)
            .filter((key) => buffer.get(key)?.isOpen && key > (last ?? ''))
            .slice(0, max);
      return keys.map((key) => {
        const value = get(key);
        if (value === null) throw new StateDamaged(key);
        return { key, value };
      });
    },
    note,
    repeated,
    flush() {
      flush();
      flushNotes();
    },
  };
}

type Buffered<T> = { readonly value: T; readonly size: number; readonly isOpen: boolean };

const keysOf = (buffer: ReadonlyMap<string, unknown>, prefix: string): string[] =>
  [...buffer.keys()].filter((key) => key.startsWith(prefix)).sort();

const checksumOf = (key: string, text: string): number => crc32(`${key}\n${text}`);

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

/** 4 MiB of a filter, allocated by the system as they are used. */
const FILTER_BITS = 25;

/** A bit for the hash of each stored key: most requested keys were never stored, and a look-up in the database costs 5 µs. */
function keyFilter() {
  const bytes = new Uint8Array(2 ** (FILTER_BITS - 3));
  const bitOf = (key: string): number => {
    let hash = 0x811c9dc5;
    for (let at = 0; at < key.length; at++) hash = Math.imul(hash ^ key.charCodeAt(at), 0x01000193);
    return (hash ^ (hash >>> 15)) >>> (32 - FILTER_BITS);
  };
  return {
    add(key: string): void {
      const bit = bitOf(key);
      bytes[bit >>> 3] = (bytes[bit >>> 3] ?? 0) | (1 << (bit & 7));
    },
    mayContain(key: string): boolean {
      const bit = bitOf(key);
      return ((bytes[bit >>> 3] ?? 0) & (1 << (bit & 7))) !== 0;
    },
  };
}
