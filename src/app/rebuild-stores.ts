// The event log and the read store of a rebuild, opened and closed: of the command, and of each of its worker threads.
import { join } from 'node:path';
import type { RowsToBuild } from '#projections/rebuild-parts.ts';
import type { Db } from '#projections/rows.ts';
import type { ProjectorDeps } from '#projections/sessions.ts';
import { acquireProcessLock } from '#src/adapters/event-log/sqlite/process-lock.ts';
import { pgliteReadStore } from '#src/adapters/read-store/pglite.ts';
import { postgresReadStore } from '#src/adapters/read-store/postgres.ts';
import { ed25519VerifyInThreadPool } from '#src/adapters/signing/ed25519.ts';
import type { Config, LogConfig } from '#src/config.ts';
import type { ReadStore } from '#src/ports/read-store.ts';
import type { JournalDeps } from '#src/usecases/process/stream.ts';
import { receiptJudge } from '#src/usecases/receipts/judge-receipt.ts';
import { verifierPrimitives } from './keys.ts';
import { openOperatorLog } from './operator.ts';

export type PartOfThread = { readonly config: StoresConfig; readonly rows: RowsToBuild };

type StoresConfig = LogConfig & Pick<Config, 'databaseUrl'>;
type Opened = ProjectorDeps & Pick<JournalDeps, 'log'> & { readonly store: ReadStore<Db> };

export async function withStores<T>(config: StoresConfig, work: (opened: Opened) => Promise<T>): Promise<T> {
  const { dataDir, databaseUrl } = config;
  // The log first: if there is none, nothing is created.
  const { log, clock, logger } = await openOperatorLog(config);
  const undo = [() => log.close()];
  try {
    const store =
      databaseUrl === null
        ? pgliteReadStore({ directory: join(dataDir, 'read-models'), logger })
        : postgresReadStore({ url: databaseUrl });
    undo.push(() => store.close());
    if (databaseUrl === null) {
      // Embedded read models that are made beside services of a shared log would have no reader. After the store, whose
      // error contains the pid of a service that has both.
      const lock = await acquireProcessLock(join(dataDir, 'events.lock'), 'alone');
      undo.push(async () => lock.release());
    }
    const primitives = { ...verifierPrimitives, ed25519Verify: ed25519VerifyInThreadPool() };
    return await work({ log, store, clock, logger, judgeReceipt: receiptJudge({ log, primitives }) });
  } finally {
    for (const step of undo.reverse()) await step();
  }
}
