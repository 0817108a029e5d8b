// By which version of a model its rows were told. Rows of another version than this build's are said at the start, and
// told anew by a rebuild.
import { type SQL, sql } from 'drizzle-orm';
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

/** Rows of a model that another version of it has told. */
export type VersionGap = { readonly model: string; readonly stored: number; readonly build: number };

/** `told`: the models of which rows stand; only these can be of another version. */
export async function readVersionGaps(
  db: Db,
  models: readonly Pick<ReadModel, 'name' | 'version'>[],
  told: Pick<ReadonlySet<string>, 'has'>,
): Promise<readonly VersionGap[]> {
  const stored = await readModelVersions(db);
  return models
    .filter(({ name }) => told.has(name))
    .map(({ name, version }) => ({ model: name, stored: stored.get(name) ?? 1, build: version }))
    .filter(({ stored, build }) => stored !== build);
}

export const isNewer = ({ stored, build }: VersionGap): boolean => stored > build;

/** A condition: no row of these models was told by a newer version. Rows of a newer one are not to be written here. */
export function noneNewer(models: readonly Pick<ReadModel, 'name' | 'version'>[]): SQL {
  const ours = JSON.stringify(Object.fromEntries(models.map(({ name, version }) => [name, version])));
  return sql`not exists (select 1 from ${modelVersions} v
    where v."version" > (${ours}::text::json ->> v."model")::integer)`;
}

/** A condition: the model's rows were told by `version` or a newer one; then no process of an older one adds to them. */
export function toldSince(model: string, version: number): SQL {
  return sql`exists (select 1 from ${modelVersions} v where v."model" = ${sql.raw(`'${model}'`)}
    and v."version" >= ${sql.raw(String(version))})`;
}
