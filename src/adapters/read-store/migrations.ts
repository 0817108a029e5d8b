// The generated migrations, found beside the source wherever it is installed.
import { createHash } from 'node:crypto';
import { fileURLToPath } from 'node:url';
import { readMigrationFiles } from 'drizzle-orm/migrator';
import type { LiveSchema } from '../../ports/rebuild-store.ts';

export const MIGRATIONS_FOLDER = fileURLToPath(new URL('../../../migrations', import.meta.url));

/** Changes with every migration: names the schema that a store of rows was made for. */
export function schemaVersion(folder: string = MIGRATIONS_FOLDER): string {
  const hashes = readMigrationFiles({ migrationsFolder: folder }).map((migration) => migration.hash);
  return createHash('sha256').update(hashes.join('\n')).digest('hex');
}

/** The schema that a rebuild makes beside the live one. */
export function rebuildSchema(folder: string): { version: string; statements: readonly string[] } {
  const files = readMigrationFiles({ migrationsFolder: folder });
  return { version: schemaVersion(folder), statements: files.flatMap((file) => file.sql) };
}

/** How the schema of the database that `ask` asks stands to these migrations. */
export async function liveSchema(
  folder: string,
  ask: (query: string) => Promise<readonly unknown[]>,
): Promise<LiveSchema> {
  const last = readMigrationFiles({ migrationsFolder: folder }).at(-1)?.folderMillis ?? 0;
  const isSome = async (query: string) => (await ask(query)).length > 0;
  if (!(await isSome(`select 1 where to_regclass('drizzle.__drizzle_migrations') is not null`)))
    return 'older';
  const had = `select 1 from drizzle.__drizzle_migrations where created_at`;
  if (await isSome(`${had} > ${last} limit 1`)) return 'newer';
  return (await isSome(`${had} = ${last} limit 1`)) ? 'this' : 'older';
}
