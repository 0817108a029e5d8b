// The event log for an operator's command, beside whatever service uses it: no tenancy is taken and none is asked for,
// because the file is safe for several processes, and a lock would keep a service from starting.
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { sqliteEventLog } from '#src/adapters/event-log/sqlite/event-log.ts';
import { pinoLogger } from '#src/adapters/logging/pino.ts';
import { systemClock, systemEntropy } from '#src/adapters/runtime/clock.ts';
import type { LogConfig } from '#src/config.ts';
import type { EventLog } from '#src/ports/event-log.ts';
import type { JournalDeps } from '#src/usecases/event-streams.ts';
import { eventStoreLog } from './stores.ts';

/** There is none where the configuration says. */
export class NoEventLog extends Error {
  constructor(file: string) {
    super(`there is no event log at ${file}: DATA_DIR must be that of the service`);
    this.name = 'NoEventLog';
  }
}

/** A person waits. */
const PATIENCE_MS = 5000;

/**
 * Makes nothing: throws `NoEventLog` where there is no file, `NoEventStore` where the server is away. What it has to say
 * while it works goes to standard error. `close` is the caller's.
 */
export async function openOperatorLog({ dataDir, eventStoreUrl }: LogConfig): Promise<JournalDeps> {
  const logger = pinoLogger({ level: 'warn', to: 'stderr' });
  const log =
    eventStoreUrl === null ? await fileOf(dataDir) : await eventStoreLog(eventStoreUrl, logger, PATIENCE_MS);
  return { log, clock: systemClock(), entropy: systemEntropy(), logger };
}

async function fileOf(dataDir: string): Promise<EventLog> {
  const file = join(dataDir, 'events.db');
  if (!existsSync(file)) throw new NoEventLog(file);
  return sqliteEventLog({ file });
}
