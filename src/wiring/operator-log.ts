// The event log for an operator's command, beside whatever service uses it: no tenancy is taken and none is asked for,
// because the file is safe for several processes, and a lock would keep a service from starting.
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { sqliteEventLog } from '../adapters/event-log/sqlite.ts';
import { pinoLogger } from '../adapters/logging/pino.ts';
import { systemClock, systemEntropy } from '../adapters/runtime/clock.ts';
import type { Config } from '../config.ts';
import type { JournalDeps } from '../usecases/journal.ts';

/** There is none where the configuration says. */
export class NoEventLog extends Error {
  constructor(file: string) {
    super(`there is no event log at ${file}: DATA_DIR must be that of the service`);
    this.name = 'NoEventLog';
  }
}

/**
 * Makes nothing: throws `NoEventLog` where there is no log. What it has to say while it works goes to standard error.
 * `close` is the caller's.
 */
export async function openOperatorLog({ dataDir }: Config): Promise<JournalDeps> {
  const file = join(dataDir, 'events.db');
  if (!existsSync(file)) throw new NoEventLog(file);
  const log = await sqliteEventLog({ file });
  return {
    log,
    clock: systemClock(),
    entropy: systemEntropy(),
    logger: pinoLogger({ level: 'warn', to: 'stderr' }),
  };
}
