// The embedded read store: PGlite in a directory of its own, for one process. Disposable: whatever is wrong with it, the
// next start deletes it and builds it again from the log.
import type { PGlite } from '@electric-sql/pglite';
import type { PgliteDatabase } from 'drizzle-orm/pglite';
import { succeedsWithin } from '#src/lib/time.ts';
import type { Logger } from '../../ports/logger.ts';
import type { ReadStore, TableLayout } from '../../ports/read-store.ts';
import { sharedMigrations, tableLayout } from './migrations.ts';
import { PgliteClient } from './pglite-client.ts';
import { type PgliteDirectory, takePgliteDirectory } from './pglite-directory.ts';
import { PGLITE_SETTINGS, unpackPgliteImage } from './pglite-image.ts';

export type PgliteOptions = {
  /** Made where it is missing; nothing else may be in it. */
  readonly directory: string;
  readonly logger: Logger;
  /** Called once if statements prove that the files are damaged: the process must end, so that the next start replays the log. */
  readonly onDamage?: (cause: unknown) => void;
  /** ms within which `health` answers. */
  readonly healthMs?: number;
};

/** A batch of the projector goes before it in the queue, and blocks this thread. */
const HEALTH_MS = 2000;
/** Changes if the files of an earlier release must not be opened. */
const FILES_VERSION = '2';

/** Takes the directory at once; throws `ReadStoreInUse` where another process has it. Opens at the first `open`. */
export function pgliteReadStore({
  directory,
  logger,
  onDamage = () => undefined,
  healthMs = HEALTH_MS,
}: PgliteOptions): ReadStore<PgliteDatabase> {
  const taken = takePgliteDirectory(directory, FILES_VERSION);
  let opening: Promise<Opened> | null = null;
  let closing: Promise<void> | null = null;

  const openHandle = async (): Promise<Opened> => {
    if (closing !== null) throw new Error('the embedded read models are closed');
    opening ??= openDirectory(taken, logger, onDamage).catch((error) => {
      opening = null;
      throw error;
    });
    return await opening;
  };
  return {
    disposable: true,
    layout: unlogged(tableLayout()),
    shared: async () => (await openHandle()).db,
    async open(schema) {
      const handle = await openHandle();
      if (handle.schema !== schema) {
        // The default schema stays in the path, for the tables that belong to no generation: only those are in it.
        await handle.pg.exec(`set search_path to "${schema}", public`);
        handle.schema = schema;
      }
      return handle.db;
    },
    async health() {
      const asked = opening;
      if (asked === null || closing !== null) return { ok: false };
      const probe = asked.then(({ pg }) => pg.query('select 1'));
      const answers = await succeedsWithin(healthMs, probe);
      // With its files gone, PGlite still answers from its memory.
      return { ok: answers && !(await asked).failures.proveDamage() };
    },
    close() {
      closing ??= closeDirectory(taken, opening, logger);
      return closing;
    },
  };
}

/** Without a write-ahead log: files that were not closed in order are never recovered, and a batch costs a tenth less. */
function unlogged({ version, statements }: TableLayout): TableLayout {
  const create = /^\s*CREATE TABLE/;
  return { version, statements: statements.map((text) => text.replace(create, 'CREATE UNLOGGED TABLE')) };
}

type Opened = {
  readonly pg: PGlite;
  readonly db: PgliteDatabase;
  readonly failures: Failures;
  /** The generation that unqualified names are of; null: none yet. */
  schema: string | null;
};

async function openDirectory(
  taken: PgliteDirectory,
  logger: Logger,
  onDamage: (cause: unknown) => void,
): Promise<Opened> {
  const intact = taken.intact();
  taken.markOpen();
  if (intact) {
    try {
      return await openFiles(taken.files, onDamage);
    } catch (error) {
      logger.warn('the embedded read models cannot be opened: replaying them from the log', { cause: error });
    }
  }
  await taken.renew(unpackPgliteImage);
  return openFiles(taken.files, onDamage);
}

async function openFiles(files: string, onDamage: (cause: unknown) => void): Promise<Opened> {
  // Loaded on use: the service listens before it opens its rows.
  const [{ PGlite }, { drizzle }, { migrate }] = await Promise.all([
    import('@electric-sql/pglite'),
    import('drizzle-orm/pglite'),
    import('drizzle-orm/pglite/migrator'),
  ]);
  const pg = await PGlite.create({ dataDir: files, postgresqlconf: PGLITE_SETTINGS });
  try {
    const failures = countFailures(onDamage, () => performance.now());
    const db = drizzle(new PgliteClient(pg, failures.add).pglite);
    await migrate(db, sharedMigrations());
    await pg.exec('set enable_seqscan = off');
    return { pg, db, failures, schema: null };
  } catch (error) {
    await pg.close().catch(() => undefined);
    throw error;
  }
}

/** Never fails but for the lock: files that cannot be closed in order are only replayed at the next start. */
async function closeDirectory(
  taken: PgliteDirectory,
  opening: Promise<Opened> | null,
  logger: Logger,
): Promise<void> {
  try {
    const opened = await opening?.catch(() => null);
    if (!opened) return;
    await opened.pg.close();
    if (!opened.failures.areSuspect()) taken.markIntact();
  } catch (error) {
    logger.warn('the embedded read models did not close cleanly; the next start replays them from the log', {
      cause: error,
    });
  } finally {
    taken.release();
  }
}

/** Internal and system errors of the database, and what it answers after a panic. */
const DAMAGED = /^(XX|58|F0|24000)/;

/** One error can have another cause, and three in a month too: so many within so long prove that the files are damaged. */
const PROOF = { failures: 3, withinMs: 60_000 };

type Failures = {
  /** Whether the next start replays the files: a statement failed, and neither its values nor the disk's space caused it. */
  areSuspect(): boolean;
  proveDamage(): boolean;
};

/** `onDamage` is called once. `now`: monotonic ms. */
export function countFailures(
  onDamage: (cause: unknown) => void,
  now: () => number,
): Failures & { readonly add: (cause: unknown) => void } {
  let suspect = false;
  let proved = false;
  let damages: readonly number[] = [];
  return {
    areSuspect: () => suspect,
    proveDamage: () => proved,
    add(cause) {
      const isTrapped = isTrap(cause);
      const state = sqlStateOf(cause);
      if (isTrapped || (state !== null && !/^(22|53)/.test(state))) suspect = true;
      if (proved || !(isTrapped || DAMAGED.test(state ?? ''))) return;
      damages = [...damages.filter((at) => now() - at < PROOF.withinMs), now()];
      if (damages.length < PROOF.failures) return;
      proved = true;
      onDamage(cause);
    },
  };
}

/** PGlite itself stopped: a trap of its WebAssembly, or an exit. */
function isTrap(error: unknown): boolean {
  for (let at = error; at instanceof Error; at = at.cause)
    if (/^(RuntimeError|ExitStatus)$/.test(at.name)) return true;
  return false;
}

/** The SQLSTATE; null: the database has not answered with an error. drizzle wraps what the driver threw. */
function sqlStateOf(error: unknown): string | null {
  for (let at = error; at instanceof Error; at = at.cause)
    if ('code' in at && typeof at.code === 'string' && /^[0-9A-Z]{5}$/.test(at.code)) return at.code;
  return null;
}
