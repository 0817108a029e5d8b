// Where events and rows are kept, by tier: all embedded, or an embedded log with a shared Postgres.
import { join } from 'node:path';
import type { Db } from '#projections/rows.ts';
import { sqliteEventLog } from '../adapters/event-log/sqlite.ts';
import { takeTenancy } from '../adapters/event-log/sqlite-tenancy.ts';
import { pgliteReadStore } from '../adapters/read-store/pglite.ts';
import { postgresReadStore } from '../adapters/read-store/postgres.ts';
import type { Config } from '../config.ts';
import type { EventLog } from '../ports/event-log.ts';
import type { Logger } from '../ports/logger.ts';
import type { ReadStore } from '../ports/read-store.ts';

export type Stores = {
  readonly log: EventLog;
  readonly readStore: ReadStore<Db>;
  /** A lock proves that no other process serves this log. */
  readonly exclusive: boolean;
  /** As in `sqlite+pglite`. */
  readonly driver: string;
};

/** Closed in reverse by `undo`, also where a later one cannot be opened. */
export async function openStores(
  config: Config,
  logger: Logger,
  undo: (() => Promise<void>)[],
): Promise<Stores> {
  const { dataDir, databaseUrl } = config;
  // The lock first: a second process on embedded read models must not start.
  const embedded = databaseUrl === null;
  const readStore: ReadStore<Db> = embedded
    ? pgliteReadStore({ directory: join(dataDir, 'read-models'), logger })
    : postgresReadStore({ url: databaseUrl });
  undo.push(() => readStore.close());
  const tenancy = await takeTenancy(join(dataDir, 'events.lock'), embedded ? 'alone' : 'shared');
  undo.push(async () => tenancy.release());
  const log = await sqliteEventLog({ file: join(dataDir, 'events.db') });
  undo.push(() => log.close());
  return { log, readStore, exclusive: embedded, driver: embedded ? 'sqlite+pglite' : 'sqlite+postgres' };
}

/** Brings the schema of DATABASE_URL's database to this version. */
export async function migrateDatabase({ databaseUrl }: Config): Promise<void> {
  if (databaseUrl === null) throw new Error('DATABASE_URL is not set');
  const store = postgresReadStore({ url: databaseUrl });
  try {
    await store.open();
  } finally {
    await store.close();
  }
}
