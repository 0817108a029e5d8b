// The generated migrations, found beside the source wherever it is installed.
import { createHash } from 'node:crypto';
import { fileURLToPath } from 'node:url';
import { readMigrationFiles } from 'drizzle-orm/migrator';

export const MIGRATIONS_FOLDER = fileURLToPath(new URL('../../../migrations', import.meta.url));

/** Changes with every migration: names the schema that a store of rows was made for. */
export function schemaVersion(folder: string = MIGRATIONS_FOLDER): string {
  const hashes = readMigrationFiles({ migrationsFolder: folder }).map((migration) => migration.hash);
  return createHash('sha256').update(hashes.join('\n')).digest('hex');
}
