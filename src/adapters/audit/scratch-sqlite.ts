// The scratch space of an audit: an SQLite database that nobody else sees, written in batches, gone with the process.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import type { Json } from '../../domain/canonical-json.ts';
import type { AuditScratch, ScratchTable } from '../../ports/audit-scratch.ts';

/** Changes held in memory over all tables, before they are written in one transaction. */
const HELD = 8192;
/** Rows of one look into a table. */
const PAGE = 256;

type Rows = {
  get(key: string): string | null;
  put(key: string, value: string): void;
  delete(key: string): void;
  /** The next rows from `from` on, without it where `after`. */
  page(from: string, after: boolean): readonly (readonly [string, string])[];
};

/** Throws where the folder for temporary files takes none. */
export function sqliteScratch(folder = tmpdir(), held = HELD): AuditScratch {
  const { db, remove } = openFile(folder);
  const tables = new Map<string, { readonly table: ScratchTable<Json>; readonly flush: () => void }>();
  let changes = 0;

  function flushAll(): void {
    if (changes === 0) return;
    changes = 0;
    db.exec('BEGIN');
    for (const { flush } of tables.values()) flush();
    db.exec('COMMIT');
  }
  const changed = () => {
    if (++changes >= held) flushAll();
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

/** Readable by the owner alone, for the record of others' payments passes through it. */
function openFile(folder: string) {
  const directory = mkdtempSync(join(folder, 'relay-audit-'));
  const remove = () => rmSync(directory, { recursive: true, force: true });
  try {
    const db = new DatabaseSync(join(directory, 'scratch.db'));
    // Nothing is to survive a crash, and nobody else reads.
    db.exec('PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA locking_mode = EXCLUSIVE');
    db.exec('PRAGMA cache_size = -16384');
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
  const from = db.prepare(`SELECT key, value FROM ${name} WHERE key >= ? ORDER BY key LIMIT ${PAGE}`);
  const after = db.prepare(`SELECT key, value FROM ${name} WHERE key > ? ORDER BY key LIMIT ${PAGE}`);
  return {
    get: (key) => (get.get(key)?.value as string | undefined) ?? null,
    put: (key, value) => void put.run(key, value),
    delete: (key) => void gone.run(key),
    page: (key, isAfter) =>
      (isAfter ? after : from).all(key).map((row) => [row.key as string, row.value as string]),
  };
}

function batchedTable(rows: Rows, changed: () => void, flushAll: () => void) {
  /** Not written yet; null: to be deleted. */
  const held = new Map<string, Json | Gone>();
  const table: ScratchTable<Json> = {
    get(key) {
      const value = held.get(key);
      if (value !== undefined) return value === GONE ? null : (value as Json);
      const text = rows.get(key);
      return text === null ? null : JSON.parse(text);
    },
    put(key, value) {
      held.set(key, value);
      changed();
    },
    delete(key) {
      held.set(key, GONE);
      changed();
    },
    *entries(prefix = '') {
      flushAll();
      let page = rows.page(prefix, false);
      for (;;) {
        for (const [key, text] of page) {
          if (!key.startsWith(prefix)) return;
          yield [key, JSON.parse(text)];
        }
        const last = page.at(-1);
        if (last === undefined || page.length < PAGE) return;
        page = rows.page(last[0], true);
      }
    },
  };
  function flush(): void {
    // In the order of the index: pages are written once.
    for (const key of [...held.keys()].sort()) {
      const value = held.get(key);
      if (value === undefined) continue;
      if (value === GONE) rows.delete(key);
      else rows.put(key, JSON.stringify(value));
    }
    held.clear();
  }
  return { table, flush };
}

type Gone = typeof GONE;
const GONE: unique symbol = Symbol('deleted');
