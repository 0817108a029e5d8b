// By which version of a model its rows were told. Rows of another version than this build's are said at the start, and
// told anew by a rebuild.
import { sql } from 'drizzle-orm';
import { integer, pgTable, text } from 'drizzle-orm/pg-core';
import type { ReadModel } from './registry.ts';
import { type Db, rowsOf } from './rows.ts';

/** A model without a row here, on rows that were told before: version 1, which wrote none. */
export const modelVersions = pgTable('model_versions', {
  model: text().primaryKey(),
  version: integer().notNull(),
});

export async function readModelVersions(db: Db): Promise<ReadonlyMap<string, number>> {
  const rows = await rowsOf<{ readonly model: string; readonly version: number }>(
    db,
    sql`select "model", "version" from ${modelVersions}`,
  );
  return new Map(rows.map(({ model, version }) => [model, version]));
}

/** Says that the rows of these models are told, all of them, by these versions. */
export async function writeModelVersions(
  tx: Db,
  models: readonly Pick<ReadModel, 'name' | 'version'>[],
): Promise<void> {
  for (const { name, version } of models) {
    await tx.execute(sql`insert into ${modelVersions} ("model", "version") values (${name}, ${version})
      on conflict ("model") do update set "version" = excluded."version"`);
  }
}
