// Scratch storage of an audit in an unlinked SQLite file: written in batches, freed when the process ends. What fits into
// the first batch is not written.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { type Json, jsonLength } from '../../domain/canonical-json.ts';
import type { AuditScratch } from '../../ports/audit-scratch.ts';

/** Limits of what is buffered before one transaction writes it: changed keys, and characters of their JSON. */
const BUFFERED_MAX = { changes: 65_536, characters: 16 * 1024 * 1024 };

/** Throws if no file can be created in `folder`. */
export function sqliteScratch<T extends Json>(
  folder = tmpdir(),
  bufferedMax = BUFFERED_MAX,
): AuditScratch<T> {
  const { db, remove } = openUnlinked(folder);
  db.exec('CREATE TABLE scratch (key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID');
  db.exec('CREATE TABLE notes (value TEXT NOT NULL, place TEXT NOT NULL) STRICT');
  const read = db.prepare('SELECT value FROM scratch WHERE key = ?');
  const write = db.prepare('INSERT OR REPLACE INTO scratch (key, value) VALUES (?, ?)');
  const range = db.prepare('SELECT value FROM scratch WHERE key >= ?1 AND key < ?2');
  const note = db.prepare('INSERT INTO notes (value, place) VALUES (?, ?)');
  const repeated = db.prepare(
    `SELECT value, place FROM
       (SELECT value, place, row_number() OVER (PARTITION BY value ORDER BY rowid) AS nth FROM notes)
     WHERE nth > 1`,
  );
  /** Not written yet. */
  const buffer = new Map<string, { readonly value: T; readonly size: number }>();
  let notes: { readonly value: string; readonly place: string }[] = [];
  const stored = keyFilter();
  let characters = 0;
  let isWritten = false;

  function flush(): void {
    isWritten = true;
    db.exec('BEGIN');
    // In the index's order, so that each page is written once.
    for (const key of [...buffer.keys()].sort()) {
      write.run(key, JSON.stringify(buffer.get(key)?.value));
      stored.add(key);
    }
    for (const { value, place } of notes) note.run(value, place);
    db.exec('COMMIT');
    buffer.clear();
    notes = [];
    characters = 0;
  }
  const flushIfFull = () => {
    const changes = Math.max(buffer.size, notes.length);
    if (changes >= bufferedMax.changes || characters >= bufferedMax.characters) flush();
  };

  return {
    get(key) {
      const put = buffer.get(key);
      if (put !== undefined) return put.value;
      const text = isWritten && stored.mayContain(key) ? read.get(key)?.value : undefined;
      return typeof text === 'string' ? JSON.parse(text) : null;
    },
    put(key, value, added) {
      const before = buffer.get(key);
      const size = before === undefined || added === undefined ? jsonLength(value) : before.size + added;
      characters += before === undefined ? key.length + size : size - before.size;
      buffer.set(key, { value, size });
      flushIfFull();
    },
    *values(prefix) {
      if (!isWritten) {
        for (const [key, { value }] of buffer) if (key.startsWith(prefix)) yield value;
        return;
      }
      flush();
      for (const { value } of range.iterate(prefix, after(prefix))) yield JSON.parse(String(value));
    },
    note(value, place) {
      characters += value.length + place.length;
      notes.push({ value, place });
      flushIfFull();
    },
    *repeated() {
      if (!isWritten) {
        const seen = new Set<string>();
        for (const one of notes) {
          if (seen.has(one.value)) yield one;
          else seen.add(one.value);
        }
        return;
      }
      flush();
      for (const { value, place } of repeated.iterate()) yield { value: String(value), place: String(place) };
    },
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
