// The commands on the read models, beside services that read them: `relay rebuild` and `relay migrate`.
import { existsSync } from 'node:fs';
import { Worker } from 'node:worker_threads';
import type { RebuildOptions, RebuildResult } from '#projections/rebuild.ts';
import { prune, rebuild } from '#projections/rebuild.ts';
import type { BuildPart } from '#projections/rebuild-parts.ts';
import { migrateOnce } from '#src/adapters/read-store/postgres.ts';
import type { Config } from '#src/config.ts';
import { type PartOfThread, withStores } from './rebuild-stores.ts';
import { errorOf, type PlainError } from './thread-error.ts';

/**
 * Throws as `rebuild` and `openOperatorLog` do; for embedded read models `ReadStoreInUse` if a service has them, and
 * `LogInUse` if services on a database share the log.
 */
export async function rebuildReadModels(config: Config, options: RebuildOptions): Promise<RebuildResult> {
  // The binary contains no file for a thread.
  const threads = existsSync(WORKER) ? { buildPart: inThread(config) } : { workers: 1 };
  return withStores(config, (deps) => rebuild(deps, { ...options, ...threads }));
}

/** Drops the generations that no process uses; returns their names. Throws as `rebuildReadModels` does. */
export async function pruneReadModels(config: Config): Promise<readonly string[]> {
  return withStores(config, ({ log, store }) => prune(store, log));
}

/** Applies the shared migrations to the database of DATABASE_URL. */
export async function migrateDatabase({ databaseUrl }: Config): Promise<void> {
  if (databaseUrl === null) throw new Error('DATABASE_URL is not set');
  await migrateOnce(databaseUrl);
}

// ── worker threads ───────────────────────────────────────────────────────────────────────────────────

type Sent = { readonly events: number; readonly position: string } | { readonly ended: PlainError | null };

const WORKER = new URL('./rebuild-worker.ts', import.meta.url);

/** Each part in a thread, which has its own connections. */
const inThread =
  ({ dataDir, eventStoreUrl, keyFile, databaseUrl }: Config): BuildPart =>
  (rows, onBatch, ending) =>
    new Promise((resolve, reject) => {
      const config = { dataDir, eventStoreUrl, keyFile, databaseUrl };
      const thread = new Worker(WORKER, {
        workerData: { config, rows } satisfies PartOfThread,
      });
      let failure: { readonly error: unknown } | null = null;
      const end = () => thread.postMessage('end');
      const settle = (error: unknown) => {
        ending.removeEventListener('abort', end);
        if (failure === null && error === null) resolve();
        else reject(failure?.error ?? error);
        void thread.terminate();
      };
      ending.addEventListener('abort', end);
      thread.on('message', (sent: Sent) => {
        if ('ended' in sent) return settle(sent.ended && errorOf(sent.ended));
        try {
          onBatch(sent.events, sent.position);
        } catch (error) {
          failure ??= { error };
          end();
        }
      });
      thread.on('error', settle);
      thread.on('exit', (code) =>
        settle(new Error(`a worker thread of the rebuild has ended with status ${code}`)),
      );
    });
