// Where events and rows are kept, by tier: all embedded, an embedded log with a shared Postgres, or EventStoreDB with it.
import { join } from 'node:path';
import type { Db } from '#projections/rows.ts';
import { sqliteEventLog } from '#src/adapters/event-log/sqlite/event-log.ts';
import { acquireProcessLock } from '#src/adapters/event-log/sqlite/process-lock.ts';
import { pgliteReadStore } from '#src/adapters/read-store/pglite.ts';
import { postgresReadStore } from '#src/adapters/read-store/postgres.ts';
import type { Config } from '#src/config.ts';
import type { EventLog } from '#src/ports/event-log.ts';
import type { Logger } from '#src/ports/logger.ts';
import type { ReadStore } from '#src/ports/read-store.ts';
import { eventStoreLog } from './event-store.ts';
import type { Ending, Undo } from './shutdown.ts';

export type Stores = {
  readonly log: EventLog;
  readonly readStore: ReadStore<Db>;
  /** A lock proves that no other process serves this log. */
  readonly exclusive: boolean;
  /** As in `sqlite+pglite`. */
  readonly driver: string;
};

/** Closed in reverse by `ending`, also where a later one cannot be opened. */
export async function openStores(
  config: Config,
  logger: Logger,
  ending: Pick<Ending, 'push' | 'signal'>,
): Promise<Stores> {
  const { eventStoreUrl, databaseUrl } = config;
  if (databaseUrl === null) return embeddedStores(config, logger, ending);
  const readStore = postgresReadStore({ url: databaseUrl });
  ending.push(() => readStore.close());
  if (eventStoreUrl === null) {
    const log = await sharedFile(config, 'shared', ending);
    return { log, readStore, exclusive: false, driver: 'sqlite+postgres' };
  }
  const log = await eventStoreLog(eventStoreUrl, logger, undefined, ending.signal);
  ending.push(() => log.close());
  return { log, readStore, exclusive: false, driver: 'eventstoredb+postgres' };
}

async function embeddedStores(config: Config, logger: Logger, undo: Undo): Promise<Stores> {
  // Its lock comes first: a second process on embedded read models must not start.
  const readStore = pgliteReadStore({ directory: join(config.dataDir, 'read-models'), logger });
  undo.push(() => readStore.close());
  const log = await sharedFile(config, 'alone', undo);
  return { log, readStore, exclusive: true, driver: 'sqlite+pglite' };
}

async function sharedFile({ dataDir }: Config, tenancy: 'alone' | 'shared', undo: Undo): Promise<EventLog> {
  const taken = await acquireProcessLock(join(dataDir, 'events.lock'), tenancy);
  undo.push(async () => taken.release());
  const log = await sqliteEventLog({ file: join(dataDir, 'events.db'), exclusive: tenancy === 'alone' });
  undo.push(() => log.close());
  return log;
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
