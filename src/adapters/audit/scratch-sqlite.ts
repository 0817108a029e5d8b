// The scratch space of an audit: an SQLite database without a name, written in batches, gone with the process.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import type { Json, JsonObject } from '../../domain/canonical-json.ts';
import type { AuditScratch, ScratchTable } from '../../ports/audit-scratch.ts';

/** Held in memory over all tables, before it is written in one transaction: changes, and characters of their JSON. */
type Held = { readonly changes: number; readonly characters: number };
const HELD: Held = { changes: 8192, characters: 8 * 1024 * 1024 };
/** Rows of one look into a table; a longer value is looked up when its turn comes. */
const PAGE = 256;
const PAGED_CHARACTERS = 8192;

type Rows = {
  get(key: string): string | null;
  put(key: string, value: string): void;
  delete(key: string): void;
  /** The next rows from `from` on, without it where `after`; null: the value is too long for a page. */
  page(from: string, after: boolean): readonly (readonly [key: string, value: string | null])[];
};

/** Throws where the folder for temporary files takes none. */
export function sqliteScratch(folder = tmpdir(), held = HELD): AuditScratch {
  const { db, remove } = openNameless(folder);
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
    if (changes >= held.changes || characters >= held.characters) flushAll();
  };

  function tableOf(name: string) {
    const known = tables.get(name);
    if (known !== undefined) return known;
    const made = batchedTable(rowsOf(db, tables.size), changed, flushAll);
    tables.set(name, made);
    return made;
  }

  return {
    // What comes out of a table is what its one caller has put there.
    table: <T extends Json>(name: string) => tableOf(name).table as unknown as ScratchTable<T>,
    close() {
      db.close();
      remove();
    },
  };
}

/**
 * The record of others' payments passes through it, so its name is taken away as soon as it is open: the system frees it
 * however the process ends. Where an open file keeps its name, `remove` takes it away.
 */
function openNameless(folder: string) {
  const directory = mkdtempSync(join(folder, 'relay-audit-'));
  const remove = () => rmSync(directory, { recursive: true, force: true });
  try {
    const db = new DatabaseSync(join(directory, 'scratch.db'));
    // Nothing is to survive a crash, nobody else reads, and a journal would be a file of its own. (SQLite's defensive
    // mode, which is on here, lets none be without.)
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
  const held = new Map<string, Json | Gone>();
  const stored = keyFilter();
  const table: ScratchTable<Json> = {
    get(key) {
      const put = held.get(key);
      if (put !== undefined) return put === GONE ? null : put;
      const text = stored.mayHave(key) ? rows.get(key) : null;
      return text === null ? null : JSON.parse(text);
    },
    put(key, value) {
      held.set(key, value);
      changed(key.length + sizeOf(value));
    },
    delete(key) {
      if (!stored.mayHave(key)) return void held.delete(key);
      held.set(key, GONE);
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
    // In the order of the index, so that each page is written once.
    for (const key of [...held.keys()].sort()) {
      const put = held.get(key);
      if (put === undefined) continue;
      if (put === GONE) rows.delete(key);
      else {
        rows.put(key, JSON.stringify(put));
        stored.add(key);
      }
    }
    held.clear();
  }
  return { table, flush };
}

/** About as many characters as its JSON has. Values are serialised only when they are written: most are replaced before. */
function sizeOf(value: Json): number {
  if (typeof value === 'string') return value.length + 2;
  if (typeof value !== 'object' || value === null) return 6;
  let size = 2;
  for (const name in value) size += name.length + 4 + sizeOf((value as JsonObject)[name] ?? null);
  return size;
}

/** Bits of one filter: 4 MiB, of which the system provides what is used. */
const FILTER_BITS = 2 ** 25;

/** A Bloom filter: most keys that are asked for were never stored, and a look-up in the database costs 5 µs. */
function keyFilter() {
  const words = new Uint32Array(FILTER_BITS / 32);
  const placesOf = (key: string): readonly [number, number, number] => {
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
      for (const at of placesOf(key)) words[at >>> 5] = (words[at >>> 5] ?? 0) | bit(at);
    },
    mayHave: (key: string): boolean => placesOf(key).every((at) => ((words[at >>> 5] ?? 0) & bit(at)) !== 0),
  };
}

type Gone = typeof GONE;
const GONE: unique symbol = Symbol('deleted');
