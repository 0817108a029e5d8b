// Scratch tables of an audit in an unlinked SQLite file: written in batches, freed when the process ends.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { type Json, jsonLength } from '../../domain/canonical-json.ts';
import type { AuditScratch, ScratchTable } from '../../ports/audit-scratch.ts';

/** Limits of what all tables buffer before one transaction writes it: changed keys, and characters of their JSON. */
type Buffered = { readonly changes: number; readonly characters: number };
const BUFFERED_MAX: Buffered = { changes: 65_536, characters: 8 * 1024 * 1024 };

/** `flush`: writes all that is buffered. */
type BatchedTable = { readonly flush: () => void; readonly table: ScratchTable<Json> };

/** Throws if no file can be created in `folder`. */
export function sqliteScratch(folder = tmpdir(), bufferedMax = BUFFERED_MAX): AuditScratch {
  const { db, remove } = openUnlinked(folder);
  const tables = new Map<string, BatchedTable>();
  let [changes, characters] = [0, 0];

  const changed = (keys: number, length: number) => {
    changes += keys;
    characters += length;
    if (changes < bufferedMax.changes && characters < bufferedMax.characters) return;
    for (const { flush } of tables.values()) flush();
    [changes, characters] = [0, 0];
  };

  function tableOf(name: string) {
    const known = tables.get(name);
    if (known !== undefined) return known;
    const made = batchedTable(db, `t${tables.size}`, changed);
    tables.set(name, made);
    return made;
  }

  return {
    // Each table has one caller, so its values have that caller's type.
    table: <T extends Json>(name: string) => tableOf(name).table as unknown as ScratchTable<T>,
    close() {
      db.close();
      remove();
    },
  };
}

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

/** `changed`: keys and characters that the buffer has more than before. */
function batchedTable(
  db: DatabaseSync,
  name: string,
  changed: (keys: number, characters: number) => void,
): BatchedTable {
  db.exec(`CREATE TABLE ${name} (key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID`);
  const read = db.prepare(`SELECT value FROM ${name} WHERE key = ?`);
  const write = db.prepare(`INSERT OR REPLACE INTO ${name} (key, value) VALUES (?, ?)`);
  const range = db.prepare(`SELECT key, value FROM ${name} WHERE key >= ?1 AND key < ?2`);
  /** Not written yet. */
  const buffer = new Map<string, Json>();
  const stored = keyFilter();
  const table: ScratchTable<Json> = {
    get(key) {
      const put = buffer.get(key);
      if (put !== undefined) return put;
      const text = stored.mayContain(key) ? read.get(key)?.value : undefined;
      return typeof text === 'string' ? JSON.parse(text) : null;
    },
    put(key, value, added) {
      const isNew = !buffer.has(key);
      buffer.set(key, value);
      if (isNew) changed(1, key.length + jsonLength(value));
      else changed(0, added ?? jsonLength(value));
    },
    *entries(prefix) {
      flush();
      for (const { key, value } of range.iterate(prefix, after(prefix)))
        yield [String(key), JSON.parse(String(value))];
    },
  };
  function flush(): void {
    db.exec('BEGIN');
    // In the index's order, so that each page is written once.
    for (const key of [...buffer.keys()].sort()) {
      write.run(key, JSON.stringify(buffer.get(key)));
      stored.add(key);
    }
    db.exec('COMMIT');
    buffer.clear();
  }
  return { table, flush };
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
