// The generated migrations: `generation` creates the tables of one
// generation, in whatever schema; `shared` those that belong to none, in the database's default schema.
import { createHash } from 'node:crypto';
import { readMigrationFiles } from 'drizzle-orm/migrator';
import { assetPath } from '#src/assets.ts';
import type { TableLayout } from '../../ports/read-store.ts';

export const MIGRATIONS_FOLDER = assetPath('migrations');

export function tableLayout(folder: string = MIGRATIONS_FOLDER): TableLayout {
  const files = readMigrationFiles({ migrationsFolder: `${folder}/generation` });
  const hashes = files.map((migration) => migration.hash).join('\n');
  return {
    version: createHash('sha256').update(hashes).digest('hex'),
    statements: files.flatMap((file) => file.sql),
  };
}

/** For drizzle's `migrate`: a table of our own, beside those of other applications. */
export const sharedMigrations = () => ({
  migrationsFolder: `${MIGRATIONS_FOLDER}/shared`,
  migrationsTable: '__webhook_relay',
});

/** Whether a database, queried by `ask`, has all shared migrations: then no right to create anything is needed. */
export async function isMigrated(ask: (query: string) => Promise<readonly unknown[]>): Promise<boolean> {
  const { migrationsFolder, migrationsTable } = sharedMigrations();
  const last = readMigrationFiles({ migrationsFolder }).at(-1)?.folderMillis ?? 0;
  const table = `drizzle.${migrationsTable}`;
  if ((await ask(`select 1 where to_regclass('${table}') is not null`)).length === 0) return false;
  return (await ask(`select 1 from ${table} where created_at >= ${last} limit 1`)).length > 0;
}
