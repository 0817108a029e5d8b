// Rows in and out of the database, many in one statement each way: JSON in one parameter, so that a batch of any size
// is the same statement. It leaves what the rows say to the models.
import { type SQL, sql } from 'drizzle-orm';
import { getTableConfig, type PgDatabase, type PgQueryResultHKT, type PgTable } from 'drizzle-orm/pg-core';
import type { Rows, StoredRow } from './fold.ts';
import type { ReadModel, Row } from './registry.ts';

/** A connection or a transaction of either driver. */
export type Db = PgDatabase<PgQueryResultHKT>;

/** A table as the statements need it. */
export type TableShape = {
  readonly name: string;
  readonly key: string;
  /** TypeScript name and database name of every column but `position`. */
  readonly columns: readonly (readonly [property: string, column: string])[];
};

export function tableShapes(models: readonly ReadModel[]): readonly TableShape[] {
  return models.flatMap((model) => model.tables.map(tableShape));
}

function tableShape(table: PgTable): TableShape {
  const { name, columns } = getTableConfig(table);
  const key = columns.find((column) => column.primary);
  if (key === undefined) throw new Error(`the table ${name} has no primary key of one column`);
  const names = new Map(columns.map((column) => [column.name, column]));
  const properties = Object.entries(table).filter(([, column]) => names.get(column?.name) === column);
  return {
    name,
    key: key.name,
    columns: properties
      .map(([property, column]) => [property, String(column.name)] as const)
      .filter(([, column]) => column !== 'position'),
  };
}

/** The rows of all these keys; a key without a row is there with null. */
export async function loadRows(
  db: Db,
  shapes: readonly TableShape[],
  keys: ReadonlyMap<string, ReadonlySet<string>>,
): Promise<Rows> {
  const rows: Rows = new Map();
  const wanted = shapes.filter((shape) => keys.has(shape.name));
  for (const { name } of wanted)
    rows.set(name, new Map([...(keys.get(name) ?? [])].map((key) => [key, null])));
  if (wanted.length === 0) return rows;
  const asked = Object.fromEntries(wanted.map(({ name }) => [name, [...(keys.get(name) ?? [])]]));
  const selects = wanted.map(
    ({ name, key }) => sql`select ${sql.raw(`'${name}'`)} as "table", row_to_json(t) as "row"
      from ${sql.identifier(name)} t where t.${sql.identifier(key)} = any(array(
        select json_array_elements_text(doc.d -> ${sql.raw(`'${name}'`)}) from doc))`,
  );
  const found = await rowsOf<{ table: string; row: Record<string, unknown> }>(
    db,
    sql`with doc as materialized (select ${JSON.stringify(asked)}::text::json as d) ${sql.join(selects, sql` union all `)}`,
  );
  const byName = new Map(wanted.map((shape) => [shape.name, shape]));
  for (const { table, row } of found) {
    const shape = byName.get(table);
    if (shape !== undefined) rows.get(table)?.set(String(row[shape.key]), fromDatabase(shape, row));
  }
  return rows;
}

/** Parts of one statement that write the rows: common table expressions over the parameter `doc`. */
export function writeParts(shapes: readonly TableShape[], dirty: Rows): { ctes: SQL[]; doc: string } {
  const doc: Record<string, unknown> = {};
  const ctes: SQL[] = [];
  for (const shape of shapes) {
    const changed = [...(dirty.get(shape.name) ?? [])];
    const upserts = changed.flatMap(([, stored]) => (stored === null ? [] : [toDatabase(shape, stored)]));
    const deletes = changed.filter(([, stored]) => stored === null).map(([key]) => key);
    if (upserts.length > 0) {
      doc[shape.name] = upserts;
      ctes.push(upsertPart(shape));
    }
    if (deletes.length > 0) {
      doc[`-${shape.name}`] = deletes;
      ctes.push(deletePart(shape));
    }
  }
  return { ctes, doc: JSON.stringify(doc) };
}

function upsertPart({ name, key, columns }: TableShape): SQL {
  const table = sql.identifier(name);
  const assigned = [...columns.map(([, column]) => column), 'position']
    .filter((column) => column !== key)
    .map((column) => sql`${sql.identifier(column)} = excluded.${sql.identifier(column)}`);
  return sql`${sql.identifier(`w_${name}`)} as (insert into ${table} select r.* from doc,
    json_populate_recordset(null::${table}, doc.d -> ${sql.raw(`'${name}'`)}) r
    on conflict (${sql.identifier(key)}) do update set ${sql.join(assigned, sql`, `)})`;
}

function deletePart({ name, key }: TableShape): SQL {
  return sql`${sql.identifier(`x_${name}`)} as (delete from ${sql.identifier(name)} where ${sql.identifier(key)} = any(
    array(select json_array_elements_text(doc.d -> ${sql.raw(`'-${name}'`)}) from doc)))`;
}

function toDatabase({ columns }: TableShape, { row, position }: StoredRow): Row {
  const record: Record<string, unknown> = { position };
  for (const [property, column] of columns) record[column] = row[property];
  return record;
}

function fromDatabase({ columns }: TableShape, record: Row): StoredRow {
  const row: Record<string, unknown> = {};
  for (const [property, column] of columns) row[property] = record[column];
  return { row, position: String(record.position) };
}

/** The two drivers answer a raw statement each in its own form. */
export async function rowsOf<T extends Row>(db: Db, statement: SQL): Promise<readonly T[]> {
  const result = (await db.execute(statement)) as unknown;
  return (Array.isArray(result) ? result : (result as { rows: unknown[] }).rows) as readonly T[];
}
