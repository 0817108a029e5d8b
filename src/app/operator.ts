// The event log and key file for an operator's command, next to a running service: no process lock is taken, because
// the log is safe for several processes and a lock would prevent a service from starting.
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { sqliteEventLog } from '#src/adapters/event-log/sqlite/event-log.ts';
import { pinoLogger } from '#src/adapters/logging/pino.ts';
import { systemClock, systemEntropy } from '#src/adapters/runtime/clock.ts';
import { keyFileStore } from '#src/adapters/signing/key-file.ts';
import type { Config, LogConfig } from '#src/config.ts';
import type { EventLog } from '#src/ports/event-log.ts';
import type { JournalDeps } from '#src/usecases/event-streams.ts';
import type { ChangeKeysDeps } from '#src/usecases/signing-keys/change-keys.ts';
import { eventStoreLog } from './stores.ts';

/** DATA_DIR contains no event log. */
export class NoEventLog extends Error {
  constructor(file: string) {
    super(`there is no event log at ${file}: DATA_DIR must be that of the service`);
    this.name = 'NoEventLog';
  }
}

/** A person waits for the answer. */
const CONNECT_MS = 5000;

/**
 * Creates nothing: throws `NoEventLog` if the file is missing, `NoEventStore` if the server does not answer. Log lines
 * go to standard error. The caller closes the log.
 */
export async function openOperatorLog({ dataDir, eventStoreUrl }: LogConfig): Promise<JournalDeps> {
  const logger = pinoLogger({ level: 'warn', to: 'stderr' });
  const log =
    eventStoreUrl === null
      ? await embeddedLog(dataDir)
      : await eventStoreLog(eventStoreUrl, logger, CONNECT_MS);
  return { log, clock: systemClock(), entropy: systemEntropy(), logger };
}

/** Throws as `openOperatorLog` does. The caller closes the log. */
export const openOperatorKeys = async (config: Config): Promise<ChangeKeysDeps> => ({
  ...(await openOperatorLog(config)),
  store: keyFileStore(config.keyFile.path),
});

async function embeddedLog(dataDir: string): Promise<EventLog> {
  const file = join(dataDir, 'events.db');
  if (!existsSync(file)) throw new NoEventLog(file);
  return sqliteEventLog({ file });
}
