// relay migrate: applies the migrations of the tables that belong to no generation of read models.
import type { Command } from 'commander';
import { readConfig } from '../config.ts';
import { CannotRun, oneLine, rootOf } from './exit.ts';
import { print } from './terminal.ts';

export function addMigrate(program: Command): void {
  program
    .command('migrate')
    .description('Apply the migrations to the database of DATABASE_URL.')
    .action(migrate);
}

async function migrate(): Promise<void> {
  const config = readConfig();
  if (config.databaseUrl === null) {
    throw new CannotRun('DATABASE_URL is not set; embedded read models are created when the service starts');
  }
  const { migrateDatabase } = await import('#src/app/rebuild.ts');
  try {
    await migrateDatabase(config);
  } catch (error) {
    throw new CannotRun(`the database could not be migrated: ${oneLine(rootOf(error))}`, { cause: error });
  }
  print(
    'The database is migrated. `relay rebuild` builds the read models of this release before it is deployed.',
  );
}
