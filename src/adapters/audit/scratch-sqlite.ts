// Scratch tables of an audit in an unlinked SQLite file: written in batches, freed when the process ends.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import type { Json, JsonObject } from '../../domain/canonical-json.ts';
import type { AuditScratch, ScratchTable } from '../../ports/audit-scratch.ts';

/** Limits of what all tables buffer before one transaction writes it: changes, and characters of their JSON. */
type Buffered = { readonly changes: number; readonly characters: number };
const BUFFERED_MAX: Buffered = { changes: 8192, characters: 8 * 1024 * 1024 };
/** Rows of one page of a table. */
const PAGE = 256;
/** A page omits longer values; they are read one by one. */
const PAGED_CHARACTERS = 8192;

type Rows = {
  get(key: string): string | null;
  put(key: string, value: string): void;
  delete(key: string): void;
  /** The next rows from key `from`, exclusive if `after`; value null: it is too long for a page. */
  page(from: string, after: boolean): readonly (readonly [key: string, value: string | null])[];
};

/** Throws if no file can be created in `folder`. */
export function sqliteScratch(folder = tmpdir(), bufferedMax = BUFFERED_MAX): AuditScratch {
  const { db, remove } = openUnlinked(folder);
  const tables = new Map<string, { readonly table: ScratchTable<Json>; readonly flush: () => void }>();
  let [changes, characters] = [0, 0];

  function flushAll(): void {
    if (changes === 0) return;
    [changes, characters] = [0, 0];
    db.exec('BEGIN');
    for (const { flush } of tables.values()) flush();
    db.exec('COMMIT');
  }
  const changed = (length: number) => {
    changes++;
    characters += length;
    if (changes >= bufferedMax.changes || characters >= bufferedMax.characters) flushAll();
  };

  function tableOf(name: string) {
    const known = tables.get(name);
    if (known !== undefined) return known;
    const made = batchedTable(rowsOf(db, tables.size), changed, flushAll);
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
    db.exec('PRAGMA temp_store = MEMORY; PRAGMA cache_size = -16384');
    try {
      remove();
    } catch {}
    return { db, remove };
  } catch (error) {
    remove();
    throw error;
  }
}

function rowsOf(db: DatabaseSync, number: number): Rows {
  const name = `t${number}`;
  db.exec(`CREATE TABLE ${name} (key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID`);
  const get = db.prepare(`SELECT value FROM ${name} WHERE key = ?`);
  const put = db.prepare(`INSERT OR REPLACE INTO ${name} (key, value) VALUES (?, ?)`);
  const gone = db.prepare(`DELETE FROM ${name} WHERE key = ?`);
  const short = `iif(length(value) > ${PAGED_CHARACTERS}, NULL, value) AS short`;
  const from = db.prepare(`SELECT key, ${short} FROM ${name} WHERE key >= ? ORDER BY key LIMIT ${PAGE}`);
  const after = db.prepare(`SELECT key, ${short} FROM ${name} WHERE key > ? ORDER BY key LIMIT ${PAGE}`);
  return {
    get: (key) => (get.get(key)?.value as string | undefined) ?? null,
    put: (key, value) => void put.run(key, value),
    delete: (key) => void gone.run(key),
    page: (key, isAfter) =>
      (isAfter ? after : from).all(key).map((row) => [row.key as string, row.short as string | null]),
  };
}

function batchedTable(rows: Rows, changed: (characters: number) => void, flushAll: () => void) {
  /** Not written yet. */
  const buffer = new Map<string, Json | Gone>();
  const stored = keyFilter();
  const table: ScratchTable<Json> = {
    get(key) {
      const put = buffer.get(key);
      if (put !== undefined) return put === GONE ? null : put;
      const text = stored.mayContain(key) ? rows.get(key) : null;
      return text === null ? null : JSON.parse(text);
    },
    put(key, value) {
      buffer.set(key, value);
      changed(key.length + sizeOf(value));
    },
    delete(key) {
      if (!stored.mayContain(key)) return void buffer.delete(key);
      buffer.set(key, GONE);
      changed(key.length);
    },
    *entries(prefix = '') {
      flushAll();
      let page = rows.page(prefix, false);
      for (;;) {
        for (const [key, short] of page) {
          if (!key.startsWith(prefix)) return;
          const text = short ?? rows.get(key);
          if (text !== null) yield [key, JSON.parse(text)];
        }
        const last = page.at(-1);
        if (last === undefined || page.length < PAGE) return;
        page = rows.page(last[0], true);
      }
    },
  };
  function flush(): void {
    // In the index's order, so that each page is written once.
    for (const key of [...buffer.keys()].sort()) {
      const put = buffer.get(key);
      if (put === undefined) continue;
      if (put === GONE) rows.delete(key);
      else {
        rows.put(key, JSON.stringify(put));
        stored.add(key);
      }
    }
    buffer.clear();
  }
  return { table, flush };
}

/** Approximate length of the JSON. Values are serialised only when they are written: most are replaced before. */
function sizeOf(value: Json): number {
  if (typeof value === 'string') return value.length + 2;
  if (typeof value !== 'object' || value === null) return 6;
  let size = 2;
  for (const name in value) size += name.length + 4 + sizeOf((value as JsonObject)[name] ?? null);
  return size;
}

/** Bits of one filter: 4 MiB, allocated by the system as they are used. */
const FILTER_BITS = 2 ** 25;

/** A Bloom filter: most requested keys were never stored, and a look-up in the database costs 5 µs. */
function keyFilter() {
  const words = new Uint32Array(FILTER_BITS / 32);
  const bitsOf = (key: string): readonly [number, number, number] => {
    let [a, b] = [0x811c9dc5, 0x9747b28c];
    for (let at = 0; at < key.length; at++) {
      const code = key.charCodeAt(at);
      a = Math.imul(a ^ code, 0x01000193);
      b = Math.imul(b + code, 0x85ebca6b) ^ (b >>> 15);
    }
    const mask = FILTER_BITS - 1;
    return [(a ^ (a >>> 13)) & mask, (b ^ (b >>> 16)) & mask, (a + Math.imul(b, 3)) & mask];
  };
  const bit = (at: number) => 1 << (at & 31);
  return {
    add(key: string): void {
      for (const at of bitsOf(key)) words[at >>> 5] = (words[at >>> 5] ?? 0) | bit(at);
    },
    mayContain: (key: string): boolean => bitsOf(key).every((at) => ((words[at >>> 5] ?? 0) & bit(at)) !== 0),
  };
}

type Gone = typeof GONE;
const GONE: unique symbol = Symbol('deleted');
