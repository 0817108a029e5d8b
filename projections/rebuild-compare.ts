// Live rows against rebuilt ones, whole rows in SQL, under one snapshot. Says which rows and columns differ, never how:
// some of them name a payer.
import { sql } from 'drizzle-orm';
import type { Place } from './rebuild-lock.ts';
import { goneAt, type Horizon } from './rebuild-swap.ts';
import { type Db, rowsOf, type TableShape } from './rows.ts';

export type RowDifference = {
  readonly key: string;
  /** `missing`: only the rebuilt rows have it; `surplus`: only the live ones. */
  readonly kind: 'missing' | 'surplus' | 'differs';
  /** Columns that differ, under their names in the database. */
  readonly columns: readonly string[];
};

export type TableComparison = {
  readonly table: string;
  /** Rows that a rebuild makes. */
  readonly rows: number;
  readonly differing: number;
  /** In order of their keys. */
  readonly first: readonly RowDifference[];
};

const SHOWN = 10;

/** Live rows that the next purge takes away, and the horizon that they are behind. */
export type BehindHorizon = Horizon & { readonly rows: number };

/** null: there are none. */
export async function countBehind(
  tx: Db,
  place: Place,
  shapes: readonly TableShape[],
  horizon: Horizon,
): Promise<BehindHorizon | null> {
  let rows = 0;
  for (const [table, gone] of goneAt(horizon)) {
    if (!shapes.some(({ name }) => name === table)) continue;
    const from = sql`${sql.identifier(place.live)}.${sql.identifier(table)}`;
    const [row] = await rowsOf<{ n: number }>(tx, sql`select count(*)::int as n from ${from} where ${gone}`);
    rows += row?.n ?? 0;
  }
  return rows === 0 ? null : { ...horizon, rows };
}

export async function compareTable(
  tx: Db,
  place: Place,
  { name, key }: TableShape,
  horizon: Horizon,
): Promise<TableComparison> {
  const late = goneAt(horizon).get(name) ?? sql`false`;
  const rowsOfSchema = (schema: string) => sql`select ${sql.identifier(key)}::text as k, to_jsonb(t) as j
    from ${sql.identifier(schema)}.${sql.identifier(name)} t where not ${late}`;
  const found = await rowsOf<{ k: string; l: boolean; b: boolean; columns: string[]; total: number }>(
    tx,
    sql`with l as (${rowsOfSchema(place.live)}), b as (${rowsOfSchema(place.beside)})
      select coalesce(l.k, b.k) as k, l.k is not null as l, b.k is not null as b, count(*) over ()::int as total,
        to_json(array(select coalesce(x.key, y.key) from jsonb_each(l.j) x full join jsonb_each(b.j) y
          on x.key = y.key where x.value is distinct from y.value order by 1)) as columns
      from l full join b on l.k = b.k where l.j is distinct from b.j
      order by coalesce(l.k, b.k) collate "C" limit ${SHOWN}`,
  );
  const [counted] = await rowsOf<{ n: number }>(
    tx,
    sql`select count(*)::int as n from ${sql.identifier(place.beside)}.${sql.identifier(name)}`,
  );
  return {
    table: name,
    rows: counted?.n ?? 0,
    differing: found[0]?.total ?? 0,
    first: found.map(({ k, l, b, columns }) => {
      if (l && b) return { key: k, kind: 'differs', columns };
      return { key: k, kind: l ? 'surplus' : 'missing', columns: [] };
    }),
  };
}
