// The values that an audit notes, the ids of events, and those of them that come again. They are compared by fingerprints of
// 53 bits, in parts that fit into memory, and only those whose fingerprints are equal as texts.
import type { DatabaseSync } from 'node:sqlite';
import { crc32 } from 'node:zlib';
import { StateDamaged } from './state-damaged.ts';

/** `notes`: of all runs, many in a row; `repeats`: of all runs. */
export const NOTES_SCHEMA = `
  CREATE TABLE notes (prints BLOB NOT NULL, checksum INTEGER NOT NULL, texts TEXT NOT NULL) STRICT;
  CREATE TABLE repeats (value TEXT NOT NULL, place TEXT NOT NULL) STRICT;
`;

/** Notes of one row, and fingerprints that are compared at once. */
const ROW_NOTES = 1024;
const COMPARED = 2 ** 20;

type Note = { readonly value: string; readonly place: string };

/** The database has the tables of `NOTES_SCHEMA`. `flush` writes what is in memory. */
export function notedValues(db: DatabaseSync, compared = COMPARED) {
  const insert = db.prepare('INSERT INTO notes (prints, checksum, texts) VALUES (?, ?, ?)');
  const newest = db.prepare('SELECT coalesce(max(rowid), 0) AS row FROM notes');
  const lastRow = () => Number(newest.get()?.row);
  /** The last row of which the repeats are known. */
  let known = lastRow();
  const prints = new Float64Array(ROW_NOTES);
  /** Each value, and then its place. */
  let texts: string[] = [];

  function flush(): void {
    if (texts.length === 0) return;
    const bytes = new Uint8Array(prints.buffer, 0, (texts.length / 2) * prints.BYTES_PER_ELEMENT);
    insert.run(bytes, crc32(bytes), JSON.stringify(texts));
    texts = [];
  }

  /** After one row, to another. */
  function* rows(
    after: number,
    to: number,
  ): Generator<{ readonly row: number; readonly prints: Float64Array }> {
    const found = db.prepare(
      'SELECT rowid, prints, checksum FROM notes WHERE rowid > ? AND rowid <= ? ORDER BY rowid',
    );
    for (const row of found.iterate(after, to)) {
      const bytes = row.prints as Uint8Array;
      if (bytes.length % 8 > 0 || row.checksum !== crc32(bytes)) throw new StateDamaged('notes');
      yield { row: Number(row.rowid), prints: new Float64Array(Uint8Array.from(bytes).buffer) };
    }
  }

  /** Fingerprints of the rows after `known` that are there several times, in these or in earlier ones. */
  function repeatedPrints(last: number): Set<number> {
    let total = 0;
    for (const one of rows(known, last)) total += one.prints.length;
    const parts = Math.ceil(total / compared);
    const repeated = new Set<number>();
    for (let part = 0; part < parts; part++) {
      // A part has about as many as the others: more room, for those that have more.
      let found = new Float64Array(Math.ceil((total / parts) * 1.1) + ROW_NOTES);
      let count = 0;
      for (const { prints } of rows(known, last))
        for (const print of prints) {
          if (print % parts !== part) continue;
          if (count === found.length) found = withRoom(found);
          found[count++] = print;
        }
      const sorted = found.subarray(0, count).sort();
      for (let n = 1; n < count; n++) if (sorted[n] === sorted[n - 1]) repeated.add(sorted[n] ?? 0);
      if (known === 0) continue;
      const fresh = new Set(sorted);
      for (const { prints } of rows(0, known))
        for (const print of prints) if (fresh.has(print)) repeated.add(print);
    }
    return repeated;
  }

  /** The notes of the rows that have one of these, each with whether its repeats are known. */
  function copySuspects(suspects: ReadonlySet<number>, last: number): void {
    db.exec('CREATE TEMP TABLE suspects (value TEXT NOT NULL, place TEXT NOT NULL, known INTEGER NOT NULL)');
    const suspect = db.prepare('INSERT INTO suspects (value, place, known) VALUES (?, ?, ?)');
    const textsOf = db.prepare('SELECT texts FROM notes WHERE rowid = ?');
    for (const { row, prints } of rows(0, last)) {
      if (!prints.some((print) => suspects.has(print))) continue;
      const texts: string[] = JSON.parse(String(textsOf.get(row)?.texts));
      prints.forEach((print, n) => {
        const [value = '', place = ''] = texts.slice(2 * n, 2 * n + 2);
        if (printOf(value) !== print) throw new StateDamaged('notes');
        if (suspects.has(print)) suspect.run(value, place, row <= known ? 1 : 0);
      });
    }
  }

  return {
    note(value: string, place: string): void {
      prints[texts.length / 2] = printOf(value);
      if (texts.push(value, place) === 2 * ROW_NOTES) flush();
    },
    /** See `AuditScratch`. */
    *repeated(): Generator<Note> {
      flush();
      const last = lastRow();
      const suspects = last === known ? new Set<number>() : repeatedPrints(last);
      if (suspects.size > 0) {
        copySuspects(suspects, last);
        db.exec(REPEATS);
      }
      known = last;
      const all = db.prepare('SELECT value, place FROM repeats ORDER BY value, rowid');
      for (const { value, place } of all.iterate()) yield { value: String(value), place: String(place) };
    },
    flush,
  };
}

const REPEATS = `
  INSERT INTO repeats SELECT value, place FROM
    (SELECT value, place, known, rowid AS n, row_number() OVER (PARTITION BY value ORDER BY rowid) AS nth FROM suspects)
  WHERE nth > 1 AND NOT known ORDER BY value, n;
  DROP TABLE suspects
`;

function withRoom(full: Float64Array): Float64Array<ArrayBuffer> {
  const more = new Float64Array(2 * full.length);
  more.set(full);
  return more;
}

/** 53 bits: two multiplicative hashes of the text, mixed. */
export function printOf(text: string): number {
  let [high, low] = [0xdeadbeef, 0x41c6ce57];
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    high = Math.imul(high ^ code, 0x9e3779b1);
    low = Math.imul(low ^ code, 0x5f356495);
  }
  high = Math.imul(high ^ (high >>> 16), 0x85ebca6b) ^ Math.imul(low ^ (low >>> 13), 0xc2b2ae35);
  low = Math.imul(low ^ (low >>> 16), 0x85ebca6b) ^ Math.imul(high ^ (high >>> 13), 0xc2b2ae35);
  return (high & 0x1fffff) * 2 ** 32 + (low >>> 0);
}
