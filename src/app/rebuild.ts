// The commands on the read models, beside services that read them: `relay rebuild` and `relay migrate`.
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import { PartsOverlap } from '#projections/projection.ts';
import type { RebuildOptions, RebuildResult } from '#projections/rebuild.ts';
import { prune, rebuild } from '#projections/rebuild.ts';
import { type BuildPart, CannotRebuild, type RowsToBuild } from '#projections/rebuild-parts.ts';
import type { Db } from '#projections/rows.ts';
import type { ProjectorDeps } from '#projections/sessions.ts';
import { acquireProcessLock } from '#src/adapters/event-log/sqlite/process-lock.ts';
import { pgliteReadStore } from '#src/adapters/read-store/pglite.ts';
import { migrateOnce, postgresReadStore } from '#src/adapters/read-store/postgres.ts';
import { ed25519VerifyInThreadPool } from '#src/adapters/signing/ed25519.ts';
import type { Config, LogConfig } from '#src/config.ts';
import { EventDamaged, EventLogUnavailable, EventOfNewerRelease, LogDamaged } from '#src/ports/event-log.ts';
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
  // The binary contains no file for a thread.
  const threads = existsSync(WORKER) ? { buildPart: inThread(config) } : { workers: 1 };
  return withStores(config, (deps) => rebuild(deps, { ...options, ...threads }));
}

/** Drops the generations that no process uses; returns their names. Throws as `rebuildReadModels` does. */
export async function pruneReadModels(config: Config): Promise<readonly string[]> {
  return withStores(config, ({ log, store }) => prune(store, log));
}

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
    const primitives = { ...verifierPrimitives, ed25519Verify: ed25519VerifyInThreadPool };
    return await work({ log, store, clock, logger, judgeReceipt: receiptJudge({ log, primitives }) });
  } finally {
    for (const step of undo.reverse()) await step();
  }
}

/** Applies the shared migrations to the database of DATABASE_URL. */
export async function migrateDatabase({ databaseUrl }: Config): Promise<void> {
  if (databaseUrl === null) throw new Error('DATABASE_URL is not set');
  await migrateOnce(databaseUrl);
}

// ── worker threads ───────────────────────────────────────────────────────────────────────────────────

export type PartOfThread = { readonly config: StoresConfig; readonly rows: RowsToBuild };

type Sent = { readonly events: number; readonly position: string } | { readonly failed: PlainError };

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
      const fail = (error: unknown) => {
        failure ??= { error };
      };
      ending.addEventListener('abort', end);
      thread.on('message', (sent: Sent) => {
        if ('failed' in sent) return fail(errorOf(sent.failed));
        try {
          onBatch(sent.events, sent.position);
        } catch (error) {
          fail(error);
          end();
        }
      });
      thread.on('error', fail);
      thread.on('exit', (code) => {
        ending.removeEventListener('abort', end);
        if (failure !== null) reject(failure.error);
        else if (code === 0) resolve();
        else reject(new Error(`a worker thread of the rebuild has ended with status ${code}`));
      });
    });

/** An error as a message carries it: of its class only the name. */
type PlainError = { readonly name: string; readonly fields: object; readonly cause: PlainError | null };

export function plainError(error: unknown): PlainError {
  if (!(error instanceof Error)) return plainError(new Error(String(error)));
  const { name, message, stack, cause, ...fields } = error;
  const sendable = Object.fromEntries(
    Object.entries(fields).filter(([, value]) => !['function', 'symbol'].includes(typeof value)),
  );
  return {
    name: error.constructor.name,
    fields: { name, message, stack, ...JSON.parse(JSON.stringify(sendable)) },
    cause: cause === undefined ? null : plainError(cause),
  };
}

/** What is told apart by its class. */
const CLASSES: ReadonlyMap<string, object> = new Map(
  [EventDamaged, EventLogUnavailable, EventOfNewerRelease, LogDamaged, CannotRebuild, PartsOverlap].map(
    (kind) => [kind.name, kind.prototype],
  ),
);

function errorOf({ name, fields, cause }: PlainError): Error {
  const error = cause === null ? new Error() : new Error('', { cause: errorOf(cause) });
  Object.setPrototypeOf(error, CLASSES.get(name) ?? Error.prototype);
  return Object.assign(error, fields);
}
