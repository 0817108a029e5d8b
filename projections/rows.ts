// Rows in and out of the database: two functions in the generation's schema, one that loads rows by their keys and one
// that writes a batch. Their plans are cached by the database; a batch of any size is one short statement.
import { type SQL, sql } from 'drizzle-orm';
import {
  getTableConfig,
  type PgDatabase,
  PgDialect,
  type PgQueryResultHKT,
  type PgTable,
} from 'drizzle-orm/pg-core';
import type { CopiedRows, Statement } from '#src/ports/read-store.ts';
import type { Dirty, Rows, StoredRow } from './fold.ts';
import type { ModelRow, ReadModel } from './model.ts';

/** A connection or a transaction of either driver. */
export type Db = PgDatabase<PgQueryResultHKT>;

/** A table as the statements need it. */
export type TableShape = {
  readonly name: string;
  readonly key: string;
  /** TypeScript name, database name and type of every column, `position` last. */
  readonly columns: readonly { readonly property: string; readonly name: string; readonly type: string }[];
};

export function tableShapes(models: readonly Pick<ReadModel, 'tables'>[]): readonly TableShape[] {
  return models.flatMap((model) => model.tables.map(tableShape));
}

/** A table never changes. */
const SHAPES = new WeakMap<PgTable, TableShape>();

function tableShape(table: PgTable): TableShape {
  const shape = SHAPES.get(table) ?? readShape(table);
  SHAPES.set(table, shape);
  return shape;
}

function readShape(table: PgTable): TableShape {
  const { name, columns } = getTableConfig(table);
  const key = columns.find((column) => column.primary);
  if (key === undefined) throw new Error(`the table ${name} has no primary key of one column`);
  if (!columns.some((column) => column.name === 'position'))
    throw new Error(`the table ${name} has no column position`);
  const byName = new Map(columns.map((column) => [column.name, column]));
  const found = Object.entries(table).flatMap(([property, column]) => {
    const known = byName.get(column?.name);
    if (known === undefined || known !== column) return [];
    return [{ property, name: String(column.name), type: known.getSQLType() }];
  });
  const isPosition = (column: { readonly name: string }) => column.name === 'position';
  return {
    name,
    key: key.name,
    columns: [...found.filter((column) => !isPosition(column)), ...found.filter(isPosition)],
  };
}

export const quoted = (name: string): string => `"${name.replaceAll('"', '""')}"`;

/** The statements that create both functions, for the schema that the search path names. */
export function rowFunctions(shapes: readonly TableShape[]): readonly string[] {
  const loads = shapes.map(
    ({ name, key }) => `when '${name}' then
      return query select k, row_to_json(t) from ${quoted(name)} t
        where t.${quoted(key)} = any(array(select json_array_elements_text(v)));`,
  );
  const writes = shapes.map(({ name, key, columns }) => {
    const names = columns.map((column) => quoted(column.name));
    const assigned = names
      .filter((column) => column !== quoted(key))
      .map((column) => `${column} = excluded.${column}`);
    const cells = columns.map(({ type }, n) => `c[${n + 1}]::${type}`);
    const insert = `insert into ${quoted(name)} (${names.join(', ')}) select ${cells.join(', ')}
        from (select string_to_array(r, chr(31) || mark, chr(29) || mark) as c
          from string_to_table(v, chr(30) || mark) r offset 0) cells`;
    return `when '+${name}' then ${insert};
    when '${name}' then ${insert} on conflict (${quoted(key)}) do update set ${assigned.join(', ')};
    when '-${name}' then
      perform set_config('relay.deletes', 'on', true);
      delete from ${quoted(name)} where ${quoted(key)} = any(array(select json_array_elements_text(v::json)));`;
  });
  return [
    `create function load_rows(wanted json) returns table (name text, stored json) language plpgsql as $$
    #variable_conflict use_column
    declare k text; v json;
    begin
      for k, v in select * from json_each(wanted) loop
        case k ${loads.join('\n')} end case;
      end loop;
    end $$`,
    `create function project_batch(expected bigint, batch_position text, batch_event text, batch_counts json,
      mark text, doc json) returns boolean
    language plpgsql as $$
    #variable_conflict use_column
    declare k text; v text;
    begin
      update projection set version = version + 1, position = batch_position, event = batch_event,
          counts = batch_counts
        where version = expected;
      if not found then return false; end if;
      for k, v in select * from json_each_text(doc) loop
        case k ${writes.join('\n')} end case;
      end loop;
      return true;
    end $$`,
    ...lossTriggers(shapes),
  ];
}

/**
 * A transaction that deletes rows without `relay.deletes` leaves a note of it, and no batch is written over what is left.
 * Its search path is not ours.
 */
function lossTriggers(shapes: readonly TableShape[]): readonly string[] {
  const triggers = shapes.flatMap(({ name }) => [
    `create trigger note_delete after delete on ${quoted(name)} referencing old table as gone
      for each statement execute function note_loss()`,
    `create trigger note_truncate after truncate on ${quoted(name)}
      for each statement execute function note_loss()`,
  ]);
  return [
    `create function note_loss() returns trigger language plpgsql as $$
    begin
      if current_setting('relay.deletes', true) = 'on' then return null; end if;
      if tg_op = 'DELETE' then
        if not exists (select from gone) then return null; end if;
      end if;
      execute format('update %I.projection set version = version + 1, loss = coalesce(loss, %L)',
        tg_table_schema, lower(tg_op) || ' of ' || tg_table_name);
      return null;
    end $$`,
    ...triggers,
  ];
}

/** From here on, in this transaction, deletes leave no note. */
export async function mayDelete(tx: Db): Promise<void> {
  await tx.execute(sql`select set_config('relay.deletes', 'on', true)`);
}

/** The rows of all these keys; a key without a row is there with null. */
export async function loadRows(
  db: Db,
  shapes: readonly TableShape[],
  keys: ReadonlyMap<string, ReadonlySet<string>>,
): Promise<Rows> {
  const rows: Rows = new Map();
  const wanted: Record<string, readonly string[]> = {};
  for (const [table, keysOfTable] of keys) {
    if (keysOfTable.size === 0) continue;
    wanted[table] = [...keysOfTable];
    rows.set(table, new Map([...keysOfTable].map((key) => [key, null])));
  }
  if (rows.size === 0) return rows;
  const found = await rowsOf<{ name: string; stored: Record<string, unknown> }>(
    db,
    sql`select name, stored from load_rows(${JSON.stringify(wanted)}::text::json)`,
  );
  const byName = new Map(shapes.map((shape) => [shape.name, shape]));
  for (const { name, stored } of found) {
    const shape = byName.get(name);
    if (shape !== undefined) rows.get(name)?.set(String(stored[shape.key]), fromDatabase(shape, stored));
  }
  return rows;
}

/** What a batch leaves beside its rows. */
export type BatchEnd = {
  readonly position: string;
  readonly event: string;
  /** Rows of each table, by its name. */
  readonly counts: Readonly<Record<string, number>>;
};

/** Of the rows' schema: see `ReadStore`. */
export type CopyRows = (statement: Statement, rows: readonly CopiedRows[]) => Promise<boolean>;

/**
 * Writes the rows and moves the projection position, in one transaction. Returns false and writes nothing if somebody else
 * has written since `version` was read.
 */
export async function writeRows(
  db: Db,
  shapes: readonly TableShape[],
  dirty: Dirty,
  { version, copy }: { readonly version: number; readonly copy: CopyRows | null },
  to: BatchEnd,
): Promise<boolean> {
  const copied: CopiedRows[] = [];
  const tables: (readonly [name: string, rows: readonly Cells[]])[] = [];
  const doc: Record<string, string> = {};
  for (const shape of shapes) {
    const inserts: Cells[] = [];
    const upserts: Cells[] = [];
    const deletes: string[] = [];
    for (const [key, { existed, stored }] of dirty.get(shape.name) ?? []) {
      if (stored !== null) (existed ? upserts : inserts).push(cellsOf(shape, stored));
      else if (existed) deletes.push(key);
    }
    tables.push([shape.name, upserts]);
    if (copy === null) tables.push([`+${shape.name}`, inserts]);
    else if (inserts.length > 0) copied.push(copiedRows(shape, inserts));
    if (deletes.length > 0) doc[`-${shape.name}`] = JSON.stringify(deletes);
  }
  const mark = markFor(tables.flatMap(([, rows]) => rows));
  const line = (cells: Cells) =>
    cells.map((cell) => cell ?? SEPARATOR.null + mark).join(SEPARATOR.cell + mark);
  for (const [name, rows] of tables)
    if (rows.length > 0) doc[name] = rows.map(line).join(SEPARATOR.row + mark);
  const statement = sql`select project_batch(${String(version)}::bigint, ${to.position}, ${to.event},
      ${JSON.stringify(to.counts)}::text::json, ${mark}, ${JSON.stringify(doc)}::text::json) as written`;
  if (copy !== null && copied.length > 0) {
    const written = await copy(DIALECT.sqlToQuery(statement), copied).catch(() => null);
    // The driver loses the error of a COPY that fails at its end, and its connection ends 5 s later: statements state it.
    return written ?? writeRows(db, shapes, dirty, { version, copy: null }, to);
  }
  const [row] = await rowsOf<{ written: boolean }>(db, statement);
  return row?.written === true;
}

const DIALECT = new PgDialect();

/** https://www.postgresql.org/docs/current/sql-copy.html#SQL-COPY-TEXT-FORMAT */
const ESCAPES: Readonly<Record<string, string>> = { '\\': '\\\\', '\n': '\\n', '\r': '\\r', '\t': '\\t' };

const escaped = (cell: string | null): string =>
  cell === null
    ? '\\N'
    : /[\\\n\r\t]/.test(cell)
      ? cell.replace(/[\\\n\r\t]/g, (it) => ESCAPES[it] ?? '')
      : cell;

const copiedRows = ({ name, columns }: TableShape, rows: readonly Cells[]): CopiedRows => ({
  table: name,
  columns: columns.map((column) => column.name),
  text: rows.map((cells) => `${cells.map(escaped).join('\t')}\n`).join(''),
});

/** Values as text, in the order of the columns. Text is split by the database at half the cost of JSON. */
type Cells = readonly (string | null)[];

const SEPARATOR = { null: '\x1d', row: '\x1e', cell: '\x1f' } as const;

/** What follows each separator, so that no value contains one; almost always nothing. */
function markFor(rows: readonly Cells[]): string {
  const separators = Object.values(SEPARATOR);
  const isIn = (mark: string) => (cell: string | null) =>
    cell !== null && separators.some((separator) => cell.includes(separator + mark));
  let mark = '';
  while (rows.some((cells) => cells.some(isIn(mark)))) mark += '~';
  return mark;
}

function cellsOf({ columns }: TableShape, { row, position }: StoredRow): Cells {
  return columns.map(({ property, type }) => {
    const value = property === 'position' ? position : row[property];
    if (value === null || value === undefined) return null;
    if (type.startsWith('json')) return JSON.stringify(value);
    // https://www.postgresql.org/docs/current/arrays.html#ARRAYS-INPUT
    return Array.isArray(value) ? `{${value.join(',')}}` : String(value);
  });
}

function fromDatabase({ columns }: TableShape, record: ModelRow): StoredRow {
  const row: Record<string, unknown> = {};
  for (const { property, name } of columns) if (name !== 'position') row[property] = record[name];
  return { row, position: String(record.position) };
}

/** The two drivers answer a raw statement each in its own form. */
export async function rowsOf<T extends ModelRow>(db: Db, statement: SQL): Promise<readonly T[]> {
  const result = (await db.execute(statement)) as unknown;
  return (Array.isArray(result) ? result : (result as { rows: unknown[] }).rows) as readonly T[];
}
