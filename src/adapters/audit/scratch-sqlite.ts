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
/** Rows of one page of a table. */
const PAGE = 256;
/** A page omits longer values; they are read one by one. */
const PAGED_CHARACTERS = 8192;

/** `flush`: writes all that is buffered, and returns how much it was. */
type Flushed = { readonly flush: () => Buffered };
type BatchedTable = Flushed & { readonly table: ScratchTable<Json> };

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
  const tables = new Map<string, BatchedTable>();
  let [changes, characters] = [0, 0];

  function write(written: Iterable<Flushed>): void {
    db.exec('BEGIN');
    for (const { flush } of written) {
      const flushed = flush();
      changes -= flushed.changes;
      characters -= flushed.characters;
    }
    db.exec('COMMIT');
  }
  const changed = (keys: number, length: number) => {
    changes += keys;
    characters += length;
    if (changes >= bufferedMax.changes || characters >= bufferedMax.characters) write(tables.values());
  };

  function tableOf(name: string) {
    const known = tables.get(name);
    if (known !== undefined) return known;
    const made = batchedTable(rowsOf(db, tables.size), changed, write);
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

/** `changed`: keys and characters that the buffer has more than before. */
function batchedTable(
  rows: Rows,
  changed: (keys: number, characters: number) => void,
  write: (written: Iterable<Flushed>) => void,
): BatchedTable {
  /** Not written yet. */
  const buffer = new Map<string, Change>();
  const stored = keyFilter();
  function change(key: string, value: Json | Gone, characters: number): void {
    const before = buffer.get(key);
    buffer.set(key, { value, characters });
    changed(before === undefined ? 1 : 0, characters - (before?.characters ?? 0));
  }
  const table: ScratchTable<Json> = {
    get(key) {
      const put = buffer.get(key)?.value;
      if (put !== undefined) return put === GONE ? null : put;
      const text = stored.mayContain(key) ? rows.get(key) : null;
      return text === null ? null : JSON.parse(text);
    },
    put: (key, value, characters = jsonLength(value)) => change(key, value, key.length + characters),
    delete(key) {
      if (stored.mayContain(key)) return change(key, GONE, key.length);
      const before = buffer.get(key);
      if (buffer.delete(key)) changed(-1, -(before?.characters ?? 0));
    },
    *entries(prefix = '') {
      if (buffer.size > 0) write([{ flush }]);
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
  function flush(): Buffered {
    const changes = buffer.size;
    let characters = 0;
    // In the index's order, so that each page is written once.
    for (const key of [...buffer.keys()].sort()) {
      const change = buffer.get(key);
      if (change === undefined) continue;
      characters += change.characters;
      if (change.value === GONE) rows.delete(key);
      else {
        rows.put(key, JSON.stringify(change.value));
        stored.add(key);
      }
    }
    buffer.clear();
    return { changes, characters };
  }
  return { table, flush };
}

/** Bits of one filter: 4 MiB, allocated by the system as they are used. */
const FILTER_BITS = 2 ** 25;

/** A Bloom filter: most requested keys were never stored, and a look-up in the database costs 5 µs. */
function keyFilter() {
  const words = new Uint32Array(FILTER_BITS / 32);
  /** The key's three bits: the first two are independent, the third follows from them. */
  let [first, second, third] = [0, 0, 0];
  const findBits = (key: string): void => {
    let a = 0x811c9dc5;
    let b = 0x9747b28c;
    for (let at = 0; at < key.length; at++) {
      const code = key.charCodeAt(at);
      a = Math.imul(a ^ code, 0x01000193);
      b = Math.imul(b + code, 0x85ebca6b) ^ (b >>> 15);
    }
    const mask = FILTER_BITS - 1;
    first = (a ^ (a >>> 13)) & mask;
    second = (b ^ (b >>> 16)) & mask;
    third = (a + Math.imul(b, 3)) & mask;
  };
  const has = (bit: number): boolean => ((words[bit >>> 5] ?? 0) & (1 << (bit & 31))) !== 0;
  const set = (bit: number): void => {
    words[bit >>> 5] = (words[bit >>> 5] ?? 0) | (1 << (bit & 31));
  };
  let size = 0;
  return {
    add(key: string): void {
      size++;
      findBits(key);
      set(first);
      set(second);
      set(third);
    },
    mayContain(key: string): boolean {
      if (size === 0) return false;
      findBits(key);
      return has(first) && has(second) && has(third);
    },
  };
}

type Change = { readonly value: Json | Gone; readonly characters: number };
type Gone = typeof GONE;
const GONE: unique symbol = Symbol('deleted');
