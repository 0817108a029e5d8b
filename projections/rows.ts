// Rows in and out of the database: two functions in the generation's schema, one that loads rows by their keys and one
// that writes a batch. Their plans are cached by the database; a batch of any size is one short statement.
import { type SQL, sql } from 'drizzle-orm';
import { getTableConfig, type PgDatabase, type PgQueryResultHKT, type PgTable } from 'drizzle-orm/pg-core';
import type { Dirty, Rows, StoredRow } from './fold.ts';
import type { ReadModel, Row } from './registry.ts';

/** A connection or a transaction of either driver. */
export type Db = PgDatabase<PgQueryResultHKT>;

/** A table as the statements need it. */
export type TableShape = {
  readonly name: string;
  readonly key: string;
  /** TypeScript name and database name of every column, `position` last; `json`: the column holds JSON. */
  readonly columns: readonly { readonly property: string; readonly name: string; readonly json: boolean }[];
};

export function tableShapes(models: readonly Pick<ReadModel, 'tables'>[]): readonly TableShape[] {
  return models.flatMap((model) => model.tables.map(tableShape));
}

function tableShape(table: PgTable): TableShape {
  const { name, columns } = getTableConfig(table);
  const key = columns.find((column) => column.primary);
  if (key === undefined) throw new Error(`the table ${name} has no primary key of one column`);
  if (!columns.some((column) => column.name === 'position'))
    throw new Error(`the table ${name} has no column position`);
  const byName = new Map(columns.map((column) => [column.name, column]));
  const found = Object.entries(table).flatMap(([property, column]) => {
    const known = byName.get(column?.name);
    if (known !== column) return [];
    return [{ property, name: String(column.name), json: /^jsonb?$/.test(known?.getSQLType() ?? '') }];
  });
  const isPosition = (column: { readonly name: string }) => column.name === 'position';
  return {
    name,
    key: key.name,
    columns: [...found.filter((column) => !isPosition(column)), ...found.filter(isPosition)],
  };
}

const quoted = (name: string): string => `"${name.replaceAll('"', '""')}"`;

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
    return `when '${name}' then
      insert into ${quoted(name)} (${names.join(', ')})
        select ${names.join(', ')} from json_populate_recordset(null::${quoted(name)}, v)
        on conflict (${quoted(key)}) do update set ${assigned.join(', ')};
    when '-${name}' then
      delete from ${quoted(name)} where ${quoted(key)} = any(array(select json_array_elements_text(v)));`;
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
    `create function project_batch(expected bigint, batch_position text, batch_event text, doc json) returns boolean
    language plpgsql as $$
    #variable_conflict use_column
    declare k text; v json;
    begin
      update projection set version = version + 1, position = batch_position, event = batch_event
        where version = expected;
      if not found then return false; end if;
      for k, v in select * from json_each(doc) loop
        case k ${writes.join('\n')} end case;
      end loop;
      return true;
    end $$`,
  ];
}

/** The rows of all these keys; a key without a row is there with null. */
export async function loadRows(
  db: Db,
  shapes: readonly TableShape[],
  keys: ReadonlyMap<string, ReadonlySet<string>>,
): Promise<Rows> {
  const rows: Rows = new Map();
  const wanted: Record<string, readonly string[]> = {};
  for (const [table, of] of keys) {
    if (of.size === 0) continue;
    wanted[table] = [...of];
    rows.set(table, new Map([...of].map((key) => [key, null])));
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

/**
 * Writes the rows and moves the projection position, in one statement. Returns false and writes nothing if somebody else
 * has written since `version` was read.
 */
export async function writeRows(
  db: Db,
  shapes: readonly TableShape[],
  dirty: Dirty,
  version: number,
  to: { readonly position: string; readonly event: string },
): Promise<boolean> {
  const doc: Record<string, unknown> = {};
  for (const shape of shapes) {
    const upserts: Row[] = [];
    const deletes: string[] = [];
    for (const [key, { existed, stored }] of dirty.get(shape.name) ?? []) {
      if (stored === null) {
        if (existed) deletes.push(key);
      } else upserts.push(toDatabase(shape, stored));
    }
    if (upserts.length > 0) doc[shape.name] = upserts;
    if (deletes.length > 0) doc[`-${shape.name}`] = deletes;
  }
  const [row] = await rowsOf<{ written: boolean }>(
    db,
    sql`select project_batch(${String(version)}::bigint, ${to.position}, ${to.event},
      ${JSON.stringify(doc)}::text::json) as written`,
  );
  return row?.written === true;
}

function toDatabase({ columns }: TableShape, { row, position }: StoredRow): Row {
  const record: Record<string, unknown> = {};
  for (const { property, name } of columns) record[name] = row[property];
  record.position = position;
  return record;
}

function fromDatabase({ columns }: TableShape, record: Row): StoredRow {
  const row: Record<string, unknown> = {};
  for (const { property, name } of columns) if (name !== 'position') row[property] = record[name];
  return { row, position: String(record.position) };
}

/** The two drivers answer a raw statement each in its own form. */
export async function rowsOf<T extends Row>(db: Db, statement: SQL): Promise<readonly T[]> {
  const result = (await db.execute(statement)) as unknown;
  return (Array.isArray(result) ? result : (result as { rows: unknown[] }).rows) as readonly T[];
}
