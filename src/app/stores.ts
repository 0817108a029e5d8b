// Where events and rows are kept, by tier: all embedded, an embedded log with a shared Postgres, or EventStoreDB with it.
// The adapters of the other tiers are not loaded.

import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Db } from '#projections/rows.ts';
import { sqliteEventLog } from '#src/adapters/event-log/sqlite/event-log.ts';
import { acquireProcessLock, type ProcessLockMode } from '#src/adapters/event-log/sqlite/process-lock.ts';
import { type Config, ConfigError } from '#src/config.ts';
import { OperatorError } from '#src/lib/operator-error.ts';
import { readPostgresUrl } from '#src/lib/postgres-url.ts';
import type { ScannedLog } from '#src/ports/event-scan.ts';
import type { Logger } from '#src/ports/logger.ts';
import type { ReadStore } from '#src/ports/read-store.ts';
import { eventLogPath } from './log-history.ts';
import type { Ending } from './shutdown.ts';
import { demandWritable } from './start-errors.ts';

export type Stores = {
  readonly log: ScannedLog;
  readonly readStore: ReadStore<Db>;
  /** A lock proves that no other process serves this log. */
  readonly exclusive: boolean;
  /** As in `sqlite+pglite`. */
  readonly driver: string;
  /** Rejects if embedded read models are found damaged: the service must end. */
  readonly damaged: Promise<never>;
};

/**
 * Closed in reverse by `ending`, also where a later one cannot be opened. `beforeOpening` gets the path of the embedded log
 * before it is opened. `alone`: no other process may serve the embedded log at that moment.
 */
export async function openStores(
  config: Config,
  logger: Logger,
  ending: Pick<Ending, 'push' | 'signal'>,
  { beforeOpening, alone }: { readonly beforeOpening: (file: string) => void; readonly alone: boolean },
): Promise<Stores> {
  const { dataDir, eventStoreUrl, databaseUrl } = config;
  if (eventStoreUrl === null) demandWritable(LOG_FILES.map((name) => join(dataDir, name)));
  const { promise: damaged, reject: onDamage } = Promise.withResolvers<never>();
  if (databaseUrl === null) {
    const { pgliteReadStore } = await import('#src/adapters/read-store/pglite.ts');
    // Its lock comes first: a second process on embedded read models must not start.
    const readStore = pgliteReadStore({ directory: join(dataDir, READ_MODELS_FOLDER), logger, onDamage });
    ending.push(() => readStore.close());
    const log = await embedded('alone');
    return { log, readStore, exclusive: true, driver: 'sqlite+pglite', damaged };
  }
  const { postgresReadStore } = await import('#src/adapters/read-store/postgres.ts');
  const read = readPostgresUrl(databaseUrl);
  if ('leftOut' in read && read.leftOut.length > 0)
    logger.warn('parameters of DATABASE_URL mean nothing to this service and are left out', {
      parameters: read.leftOut.join(', '),
    });
  const readStore = postgresReadStore({ url: databaseUrl });
  ending.push(() => readStore.close());
  if (eventStoreUrl === null) {
    const log = await embedded('shared');
    return { log, readStore, exclusive: false, driver: 'sqlite+postgres', damaged };
  }
  const log = await eventStoreLog(eventStoreUrl, logger, undefined, ending.signal);
  ending.push(() => log.close());
  return { log, readStore, exclusive: false, driver: 'eventstoredb+postgres', damaged };

  async function embedded(mode: ProcessLockMode): Promise<ScannedLog> {
    const lockFile = join(dataDir, 'events.lock');
    if (alone && mode === 'shared') (await acquireProcessLock(lockFile, 'alone')).release();
    const taken = await acquireProcessLock(lockFile, mode);
    ending.push(async () => taken.release());
    const file = eventLogPath(config);
    beforeOpening(file);
    const log = await sqliteEventLog({ file, logger, writes: true });
    ending.push(() => log.close());
    return log;
  }
}

/** Of the embedded read models, in DATA_DIR. */
export const READ_MODELS_FOLDER = 'read-models';

/** SQLite's own files among them: a log restored by another user has one of them left over. */
export const LOG_FILES = ['events.db', 'events.db-wal', 'events.db-shm', 'events.lock'];

/** The server of EVENTSTORE_URL did not answer. Shows no part of the connection string: it may hold a password. */
export class NoEventStore extends OperatorError {
  constructor(options?: ErrorOptions) {
    super(
      'the event log of EVENTSTORE_URL does not answer, or refuses this user, password or CA (the log states which): correct it and start the service again',
      options,
    );
  }
}

/** A supervisor starts log and service together; if the server does not answer, it should see a failed start. */
const PATIENCE_MS = 30_000;
const LOOK_MS = 500;

/**
 * `patienceMs`: how long to wait for the server before `NoEventStore`; `ending` ends the wait. Throws `ConfigError`
 * for an unreadable string.
 */
export async function eventStoreLog(
  url: string,
  logger: Logger,
  patienceMs = PATIENCE_MS,
  ending?: AbortSignal,
): Promise<ScannedLog> {
  const { eventStoreDbEventLog, UnreadableConnectionString } = await import(
    '#src/adapters/event-log/eventstoredb/event-log.ts'
  );
  const log = open();
  for (const since = performance.now(); ; await sleep(LOOK_MS)) {
    const failure = await log.head().then(
      () => null,
      (cause: unknown) => ({ cause }),
    );
    if (failure === null) return log;
    if (performance.now() - since < patienceMs && ending?.aborted !== true) continue;
    await log.close();
    logger.error('the event log of EVENTSTORE_URL cannot be read', failure);
    throw new NoEventStore(failure);
  }

  function open(): ScannedLog {
    try {
      return eventStoreDbEventLog({ url, logger });
    } catch (error) {
      if (!(error instanceof UnreadableConnectionString)) throw error;
      throw new ConfigError([{ variable: 'EVENTSTORE_URL', problem: error.message }]);
    }
  }
}
