// Rows by their keys in a SQLite table that is written at its end only: what is written at once is a run, in the order of its
// keys, and many runs are merged into one. One index of all rows would be written at as many places as there are new keys.
import type { DatabaseSync } from 'node:sqlite';
import { crc32 } from 'node:zlib';
import { BITS_PER_TEXT, BloomFilter, type FilterLayer, GrowingFilter } from '#src/lib/bloom-filter.ts';
import { StateDamaged } from './state-damaged.ts';

export const RUNS_SCHEMA = `
  CREATE TABLE scratch (run INTEGER NOT NULL, key TEXT NOT NULL, value TEXT NOT NULL, checksum INTEGER,
    PRIMARY KEY (run, key)) STRICT, WITHOUT ROWID;
  CREATE TABLE runs (run INTEGER PRIMARY KEY) STRICT;
  CREATE TABLE filters (layer INTEGER PRIMARY KEY, texts INTEGER NOT NULL, bits BLOB NOT NULL, checksum INTEGER NOT NULL)
    STRICT;
  CREATE TABLE contents (checksum INTEGER NOT NULL) STRICT;
`;

/** Runs of one level that are merged into one of the next. */
const MERGED = 32;
/** The number of a run is that of its last rows, times this, and its level: a merged run is behind those it replaces. */
const LEVELS = 8;

type Options = {
  /** Each row has a checksum. */
  readonly isState: boolean;
  /** Of what a state has beside the runs. */
  readonly checksumBeside: () => number;
};

/** The database has the tables of `RUNS_SCHEMA`. */
export function sortedRuns(db: DatabaseSync, { isState, checksumBeside }: Options) {
  const read = db.prepare('SELECT value, checksum FROM scratch WHERE run = ? AND key = ?');
  const insert = db.prepare('INSERT INTO scratch (run, key, value, checksum) VALUES (?, ?, ?, ?)');
  const range = db.prepare(`
    SELECT key, value, checksum, max(run) FROM scratch
    WHERE run IN (SELECT run FROM runs) AND key >= ?1 AND key < ?2 GROUP BY key ORDER BY key`);
  const runs = db
    .prepare('SELECT run FROM runs ORDER BY run')
    .all()
    .map(({ run }) => Number(run));
  const filter = new GrowingFilter(readLayers(db));
  const contents = (): number =>
    crc32(JSON.stringify([runs, filter.layers.map(({ texts }) => texts), BITS_PER_TEXT, checksumBeside()]));
  if (isState && runs.length + filter.layers.length > 0) {
    // A run or a layer that is missing would hide rows.
    const stated = db.prepare('SELECT checksum FROM contents').all();
    if (stated.length !== 1 || stated[0]?.checksum !== contents()) throw new StateDamaged('contents');
  }

  function checked(key: string, row: Readonly<Record<string, unknown>>): string {
    const text = String(row.value);
    if (isState && row.checksum !== checksumOf(key, text)) throw new StateDamaged(key);
    return text;
  }

  function announce(run: number): void {
    db.prepare('INSERT INTO runs (run) VALUES (?)').run(run);
    runs.push(run);
  }

  /** Merges the last runs while so many are of one level. Outside of a transaction, what it deletes takes little memory. */
  function merge(): void {
    for (let level = 0; level < LEVELS - 1; level++) {
      const merged = runs.filter((run) => run % LEVELS === level);
      const [first, last] = [merged[0], merged.at(-1)];
      if (merged.length < MERGED || first === undefined || last === undefined) return;
      db.prepare(MERGE).run(last + 1, first, last);
      db.prepare('DELETE FROM runs WHERE run BETWEEN ? AND ?').run(first, last);
      runs.splice(runs.length - merged.length);
      announce(last + 1);
      const remove = db.prepare(DELETE_SOME);
      while (Number(remove.run(first, last).changes) > 0);
    }
  }

  return {
    isEmpty: () => runs.length === 0,
    /** false: the key has certainly no row. */
    mayContain: (key: string): boolean => filter.has(key),
    /** The text that was written last; null: none was. */
    get(key: string): string | null {
      if (!filter.has(key)) return null;
      for (let n = runs.length - 1; n >= 0; n--) {
        const row = read.get(runs[n] ?? 0, key);
        if (row !== undefined) return checked(key, row);
      }
      return null;
    },
    /** In the order of the keys. */
    write(rows: Iterable<readonly [key: string, text: string]>): void {
      const run = (Math.floor((runs.at(-1) ?? 0) / LEVELS) + 1) * LEVELS;
      for (const [key, text] of rows) {
        insert.run(run, key, text, isState ? checksumOf(key, text) : null);
        filter.add(key);
      }
      announce(run);
    },
    merge,
    /** Of all keys from `from` to before `to`, in their order. */
    *range(from: string, to: string): Generator<string> {
      for (const row of range.iterate(from, to)) yield checked(String(row.key), row);
    },
    /** What a later run continues. */
    save(): void {
      writeLayers(db, filter);
      db.exec('DELETE FROM contents');
      db.prepare('INSERT INTO contents (checksum) VALUES (?)').run(contents());
    },
  };
}

const MERGE = `
  INSERT INTO scratch (run, key, value, checksum)
  SELECT ?1, key, value, checksum FROM
    (SELECT key, value, checksum, max(run) FROM scratch WHERE run BETWEEN ?2 AND ?3 GROUP BY key)
  ORDER BY key`;

/** A journal in memory keeps each page that is changed until the end of its transaction. */
const DELETE_SOME = `
  DELETE FROM scratch WHERE (run, key) IN (SELECT run, key FROM scratch WHERE run BETWEEN ? AND ? LIMIT 8192)`;

const checksumOf = (key: string, text: string): number => crc32(`${key}\n${text}`);

function readLayers(db: DatabaseSync): readonly FilterLayer[] {
  const rows = db.prepare('SELECT layer, texts, bits, checksum FROM filters ORDER BY layer').all();
  return rows.map(({ layer, texts, bits, checksum }) => {
    const bytes = Uint8Array.from(bits as Uint8Array);
    if (bytes.length === 0 || bytes.length % 4 > 0 || checksum !== layerChecksum(bytes, Number(texts)))
      throw new StateDamaged(`layer ${layer} of the keys`);
    return { filter: new BloomFilter(new Uint32Array(bytes.buffer)), texts: Number(texts) };
  });
}

function writeLayers(db: DatabaseSync, { layers }: GrowingFilter): void {
  const put = db.prepare('INSERT OR REPLACE INTO filters (layer, texts, bits, checksum) VALUES (?, ?, ?, ?)');
  const known = db.prepare('SELECT texts FROM filters WHERE layer = ?');
  for (const [layer, { filter, texts }] of layers.entries()) {
    if (known.get(layer)?.texts === texts) continue;
    const bytes = new Uint8Array(filter.words.buffer);
    put.run(layer, texts, bytes, layerChecksum(bytes, texts));
  }
}

const layerChecksum = (bytes: Uint8Array, texts: number): number => crc32(`${texts}\n`, crc32(bytes));
