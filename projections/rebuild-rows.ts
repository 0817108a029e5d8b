// Folded rows into the tables beside the live ones: new rows by COPY where the store has it, changed ones by the
// projector's own statement.
import { sql } from 'drizzle-orm';
import { getTableConfig } from 'drizzle-orm/pg-core';
import type { RebuildTransaction } from '#src/ports/rebuild-store.ts';
import { type Checkpoint, writeBatch } from './checkpoint.ts';
import type { Rows, StoredRow } from './fold.ts';
import type { ReadModel } from './registry.ts';
import { type Db, type TableShape, writeParts } from './rows.ts';

/** Table → names of the columns that hold JSON, whatever is in them. */
export type JsonColumns = ReadonlyMap<string, ReadonlySet<string>>;

export function jsonColumns(models: readonly ReadModel[]): JsonColumns {
  const tables = models.flatMap((model) => model.tables.map(getTableConfig));
  return new Map(
    tables.map(({ name, columns }) => [
      name,
      new Set(columns.filter((column) => /^jsonb?$/.test(column.getSQLType())).map((column) => column.name)),
    ]),
  );
}

/** `isThere`: whether the key had a row before. `from`, `to`: the rebuild's own checkpoint, moved with the rows. */
export async function writeFolded(
  { db, copy }: RebuildTransaction<Db>,
  tables: { readonly shapes: readonly TableShape[]; readonly json: JsonColumns; readonly set: string },
  dirty: Rows,
  isThere: (table: string, key: string) => boolean,
  from: Checkpoint | null,
  to: Checkpoint,
): Promise<void> {
  const changed: Rows = new Map();
  for (const shape of tables.shapes) {
    const lines: string[] = [];
    const rest = new Map<string, StoredRow | null>();
    for (const [key, row] of dirty.get(shape.name) ?? []) {
      if (copy === null || row === null || isThere(shape.name, key)) rest.set(key, row);
      else lines.push(copyLine(shape, tables.json.get(shape.name), row));
    }
    if (copy !== null && lines.length > 0) {
      const columns = [...shape.columns.map(([, column]) => column), 'position'];
      await copy(shape.name, columns, lines.join(''));
    }
    if (rest.size > 0) changed.set(shape.name, rest);
  }
  await db.execute(sql`select set_config('enable_seqscan', 'off', true)`);
  if (!(await writeBatch(db, tables.set, writeParts(tables.shapes, changed), from, to))) {
    throw new Error('the rebuild is not where it was: run it again');
  }
}

function copyLine(
  { columns }: TableShape,
  json: ReadonlySet<string> | undefined,
  { row, position }: StoredRow,
): string {
  let line = '';
  for (const [property, column] of columns)
    line += `${copyCell(row[property], json?.has(column) === true)}\t`;
  return `${line}${escaped(position)}\n`;
}

function copyCell(value: unknown, isJson: boolean): string {
  if (value === null || value === undefined) return '\\N';
  // Arrays of numbers: https://www.postgresql.org/docs/current/arrays.html#ARRAYS-INPUT
  if (!isJson && Array.isArray(value)) return `{${value.map(Number).join(',')}}`;
  if (isJson || typeof value === 'object') return escaped(JSON.stringify(value));
  return typeof value === 'string' ? escaped(value) : String(value);
}

const ESCAPES: Readonly<Record<string, string>> = { '\\': '\\\\', '\n': '\\n', '\r': '\\r', '\t': '\\t' };

/** PostgreSQL's text format of COPY: https://www.postgresql.org/docs/current/sql-copy.html#SQL-COPY-TEXT-FORMAT */
function escaped(text: string): string {
  return /[\\\n\r\t]/.test(text) ? text.replace(/[\\\n\r\t]/g, (found) => ESCAPES[found] ?? found) : text;
}
