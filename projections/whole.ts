// Whether a generation still has all rows that were projected into it. Triggers note every delete that is not ours
// (`rows.ts`); deletes that no trigger notes (files put back, triggers disabled) are found by counting when the store is
// opened.
import { sql } from 'drizzle-orm';
import { readHead } from './projection.ts';
import { type Db, quoted, rowsOf, type TableShape } from './rows.ts';

/** Pages of a table that one statement counts: it holds the thread of an embedded store for some 10 ms. */
const PAGES = 1000;

const namesOf = (shapes: readonly TableShape[]) => [
  'projection',
  'retention',
  ...shapes.map(({ name }) => name),
];

/** Reads a row of every table; throws if one cannot be read. */
export async function readTables(db: Db, shapes: readonly TableShape[]): Promise<void> {
  const reads = namesOf(shapes).map((name) => `exists (select from ${quoted(name)})`);
  await db.execute(sql.raw(`select ${reads.join(', ')}`));
}

/** Table name → pages; null: there is no such table. */
type Pages = ReadonlyMap<string, number | null>;

async function pagesOf(db: Db, schema: string, shapes: readonly TableShape[]): Promise<Pages> {
  const names = namesOf(shapes);
  const found = await rowsOf<{ name: string; pages: number | null }>(
    db,
    sql`select name, (pg_relation_size(to_regclass(format('%I.%I', ${schema}::text, name)))
        / current_setting('block_size')::int)::int as pages
      from json_array_elements_text(${JSON.stringify(names)}::text::json) name`,
  );
  return new Map(found.map(({ name, pages }) => [name, pages]));
}

/** Returns which table of `schema` is missing, as in `no table jobs`; null: none is. */
export async function findMissingTable(
  db: Db,
  schema: string,
  shapes: readonly TableShape[],
): Promise<string | null> {
  for (const [name, pages] of await pagesOf(db, schema, shapes))
    if (pages === null) return `no table ${name}`;
  return null;
}

/**
 * Returns why the rows of `schema`, which has all tables, are not complete; null if they are. Counts all rows, in one snapshot. `turn` is called
 * between two statements: other work of the thread continues.
 */
export async function findLoss(
  db: Db,
  schema: string,
  shapes: readonly TableShape[],
  turn: () => Promise<void>,
): Promise<string | null> {
  return db.transaction(
    async (tx) => {
      const found = await pagesOf(tx, schema, shapes);
      const head = await readHead(tx);
      if (head.loss !== null) return head.loss;
      for (const { name } of shapes) {
        const expected = head.counts[name] ?? 0;
        const pages = found.get(name) ?? 0;
        let counted = 0;
        for (let page = 0; page < pages; page += PAGES) {
          const [row] = await rowsOf<{ n: number }>(
            tx,
            sql`select count(*)::int as n from ${sql.identifier(name)}
              where ctid >= ${`(${page},0)`}::text::tid and ctid < ${`(${page + PAGES},0)`}::text::tid`,
          );
          counted += row?.n ?? 0;
          await turn();
        }
        if (counted !== expected) return `${name} has ${counted} rows instead of ${expected}`;
      }
      return null;
    },
    { isolationLevel: 'repeatable read' },
  );
}
