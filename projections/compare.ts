// The rows of two generations compared, whole rows in SQL, in one snapshot. Reports which rows and columns differ, never
// their values: some of them name a payer.
import { sql } from 'drizzle-orm';
import { type Before, isPurged } from './purge.ts';
import { type Db, rowsOf, type TableShape } from './rows.ts';

export type RowDifference = {
  readonly key: string;
  /** `missing`: only the rebuilt rows have it; `surplus`: only the current ones. */
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

/** Rows behind the horizon are left out: the purge deletes them. */
export async function compareTable(
  tx: Db,
  { current, rebuilt }: { readonly current: string; readonly rebuilt: string },
  { name, key }: TableShape,
  horizon: Before,
): Promise<TableComparison> {
  const purged = isPurged(name, horizon);
  const rowsIn = (schema: string) =>
    sql`select * from ${sql.identifier(schema)}.${sql.identifier(name)} where not ${purged}`;
  const id = sql.identifier(key);
  const found = await rowsOf<{ k: string; l: boolean; b: boolean; columns: string[]; total: number }>(
    tx,
    sql`with l as (${rowsIn(current)}), b as (${rowsIn(rebuilt)}),
      d as ((select * from l except select * from b) union all (select * from b except select * from l)),
      k as (select distinct ${id} as k from d),
      first as (select k, count(*) over ()::int as total from k order by k collate "C" limit ${SHOWN})
      select first.k::text as k, l.${id} is not null as l, b.${id} is not null as b, total,
        to_json(array(select coalesce(x.key, y.key) from jsonb_each(to_jsonb(l)) x
          full join jsonb_each(to_jsonb(b)) y on x.key = y.key
          where x.value is distinct from y.value order by 1)) as columns
      from first left join l on l.${id} = first.k left join b on b.${id} = first.k order by first.k collate "C"`,
  );
  const [counted] = await rowsOf<{ n: number }>(
    tx,
    sql`select count(*)::int as n from (${rowsIn(rebuilt)}) b`,
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
