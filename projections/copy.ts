// A batch of a rebuild: new rows by COPY if the store has it, the others by the projector's own statement.
import type { RebuildTransaction } from '#src/ports/rebuild-store.ts';
import type { ChangedRow, StoredRow } from './fold.ts';
import type { WriteBatch } from './projection.ts';
import { type Db, type TableShape, writeRows } from './rows.ts';

/** In the transaction of `tx`, whose search path names the generation. */
export function copyBatch({ db, copy }: RebuildTransaction<Db>, shapes: readonly TableShape[]): WriteBatch {
  return async (dirty, version, to) => {
    if (copy === null) return writeRows(db, shapes, dirty, version, to);
    const rest = new Map<string, Map<string, ChangedRow>>();
    for (const shape of shapes) {
      const changed = new Map<string, ChangedRow>();
      let lines = '';
      for (const [key, row] of dirty.get(shape.name) ?? []) {
        if (row.existed) changed.set(key, row);
        else if (row.stored !== null) lines += copyLine(shape, row.stored);
      }
      const columns = shape.columns.map(({ name }) => name);
      if (lines !== '') await copy(shape.name, columns, lines);
      if (changed.size > 0) rest.set(shape.name, changed);
    }
    return writeRows(db, shapes, rest, version, to);
  };
}

function copyLine({ columns }: TableShape, { row, position }: StoredRow): string {
  let line = '';
  for (const { property, name, json } of columns) {
    if (name !== 'position') line += `${copyCell(row[property], json)}\t`;
  }
  return `${line}${escaped(position)}\n`;
}

function copyCell(value: unknown, json: boolean): string {
  if (value === null || value === undefined) return '\\N';
  // Arrays of numbers: https://www.postgresql.org/docs/current/arrays.html#ARRAYS-INPUT
  if (!json && Array.isArray(value)) return `{${value.map(Number).join(',')}}`;
  if (json || typeof value === 'object') return escaped(JSON.stringify(value));
  return typeof value === 'string' ? escaped(value) : String(value);
}

const ESCAPES: Readonly<Record<string, string>> = { '\\': '\\\\', '\n': '\\n', '\r': '\\r', '\t': '\\t' };

/** PostgreSQL's text format of COPY: https://www.postgresql.org/docs/current/sql-copy.html#SQL-COPY-TEXT-FORMAT */
function escaped(text: string): string {
  // A search for one character is much faster than a regular expression.
  const isPlain =
    !text.includes('\\') && !text.includes('\n') && !text.includes('\t') && !text.includes('\r');
  return isPlain ? text : text.replace(/[\\\n\r\t]/g, (found) => ESCAPES[found] ?? found);
}
