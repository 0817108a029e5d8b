// The commands on the read models, beside services that read them: `relay rebuild` and `relay migrate`.
import { join } from 'node:path';
import { prune, type RebuildOptions, type RebuildResult, rebuild } from '#projections/rebuild.ts';
import type { Db } from '#projections/rows.ts';
import type { ProjectorDeps } from '#projections/sessions.ts';
import { acquireProcessLock } from '#src/adapters/event-log/sqlite/process-lock.ts';
import { pgliteReadStore } from '#src/adapters/read-store/pglite.ts';
import { migrateOnce, postgresReadStore } from '#src/adapters/read-store/postgres.ts';
import { ed25519VerifyInThreadPool } from '#src/adapters/signing/ed25519.ts';
import type { Config } from '#src/config.ts';
import type { ReadStore } from '#src/ports/read-store.ts';
import type { JournalDeps } from '#src/usecases/process/stream.ts';
import { receiptJudge } from '#src/usecases/receipts/judge-receipt.ts';
import { verifierPrimitives } from './keys.ts';
import { openOperatorLog } from './operator.ts';

/**
 * Throws as `rebuild` and `openOperatorLog` do; for embedded read models `ReadStoreInUse` if a service has them, and
 * `LogInUse` if services on a database share the log.
 */
export async function rebuildReadModels(config: Config, options: RebuildOptions): Promise<RebuildResult> {
  return withStores(config, (deps) => rebuild(deps, options));
}

/** Drops the generations that no process uses; returns their names. Throws as `rebuildReadModels` does. */
export async function pruneReadModels(config: Config): Promise<readonly string[]> {
  return withStores(config, ({ log, store }) => prune(store, log));
}

type Opened = ProjectorDeps & Pick<JournalDeps, 'log'> & { readonly store: ReadStore<Db> };

async function withStores<T>(config: Config, work: (opened: Opened) => Promise<T>): Promise<T> {
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

export const migrateDatabase = (databaseUrl: string): Promise<void> => migrateOnce(databaseUrl);
