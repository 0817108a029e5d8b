// The embedded read store: PGlite in a directory of its own, for one process. Disposable: whatever is wrong with it, it is
// deleted and built again from the log.
import type { PGlite } from '@electric-sql/pglite';
import type { PgliteDatabase } from 'drizzle-orm/pglite';
import { succeedsWithin } from '#src/lib/time.ts';
import type { Logger } from '../../ports/logger.ts';
import type { ReadStore, TableLayout } from '../../ports/read-store.ts';
import type { RebuildStore } from '../../ports/rebuild-store.ts';
import { sharedMigrations, tableLayout } from './migrations.ts';
import { type DamageWatch, watchDamage } from './pglite-damage.ts';
import { type PgliteDirectory, takePgliteDirectory } from './pglite-directory.ts';
import { PGLITE_SETTINGS, unpackPgliteImage } from './pglite-image.ts';
import { prepareStatements } from './pglite-prepared.ts';

export type PgliteOptions = {
  /** Made where it is missing; nothing else may be in it. */
  readonly directory: string;
  readonly logger: Logger;
  /** The shortest pause between two replacements of damaged files; it doubles with each. */
  readonly renewalPauseMs?: number;
  /** ms within which `health` answers. */
  readonly healthMs?: number;
};

/** A batch of the projector goes before it in the queue, and blocks this thread. */
const HEALTH_MS = 2000;
const RENEWAL_PAUSE_MS = 30_000;
/** Changes if the files of an earlier release must not be opened. */
const FILES_VERSION = '2';

/** Takes the directory at once; throws `ReadStoreInUse` where another process has it. Opens at the first `open`. */
export function pgliteReadStore({
  directory,
  logger,
  renewalPauseMs = RENEWAL_PAUSE_MS,
  healthMs = HEALTH_MS,
}: PgliteOptions): ReadStore<PgliteDatabase> {
  const taken = takePgliteDirectory(directory, FILES_VERSION);
  const renewals = paced(renewalPauseMs);
  let opened: Opened | null = null;
  let opening: Promise<Opened> | null = null;
  let closing: Promise<void> | null = null;

  const openOnce = (open: () => Promise<Opened>): Promise<Opened> => {
    opened = null;
    const attempt = open().then(
      (result) => {
        opened = result;
        return result;
      },
      (error) => {
        opening = null;
        throw error;
      },
    );
    opening = attempt;
    return attempt;
  };
  const openHandle = async (): Promise<Opened> => {
    if (closing !== null) throw new Error('the embedded read models are closed');
    const broken = opened;
    if (broken?.damage.isProven() && renewals.isDue()) {
      return await openOnce(() => renewBroken(taken, broken, logger));
    }
    return await (opening ?? openOnce(() => openDirectory(taken, logger)));
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
      if (asked === null || closing !== null || opened?.damage.isProven()) return { ok: false };
      return {
        ok: await succeedsWithin(
          healthMs,
          asked.then(({ pg }) => pg.query('select 1')),
        ),
      };
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

/** As a rebuild needs it: it has no COPY. Throws `ReadStoreInUse` if another process has the directory. */
export function pgliteRebuildStore(options: PgliteOptions): RebuildStore<PgliteDatabase> {
  const store = pgliteReadStore(options);
  return {
    disposable: true,
    layout: store.layout,
    async migrate() {
      await store.shared();
    },
    async transaction(work, isolation) {
      const db = await store.shared();
      const given = isolation === undefined ? undefined : { isolationLevel: isolation };
      return await db.transaction((tx) => work({ db: tx, copy: null }), given);
    },
    close: () => store.close(),
  };
}

type Opened = {
  readonly pg: PGlite;
  readonly db: PgliteDatabase;
  readonly damage: DamageWatch;
  /** The generation that unqualified names are of; null: none yet. */
  schema: string | null;
};

/** A disk that spoils all that is written to it, or a fault of ours that looks like it, must not mean endless replays. */
function paced(pauseMs: number): { isDue(): boolean } {
  let pause = pauseMs;
  let next = Number.NEGATIVE_INFINITY;
  return {
    isDue() {
      const now = performance.now();
      if (now < next) return false;
      next = now + pause;
      pause *= 2;
      return true;
    },
  };
}

async function openDirectory(taken: PgliteDirectory, logger: Logger): Promise<Opened> {
  const intact = taken.intact();
  taken.markOpen();
  if (intact) {
    try {
      return await openFiles(taken.files);
    } catch (error) {
      logger.warn('the embedded read models cannot be opened: replaying them from the log', { cause: error });
    }
  }
  return openNewFiles(taken);
}

/** The files are marked open since they were opened: whatever happens here, they are not believed again. */
async function renewBroken(taken: PgliteDirectory, broken: Opened, logger: Logger): Promise<Opened> {
  const cause = broken.damage.cause();
  logger.warn('the embedded read models are damaged: replaying them from the log', { cause });
  await broken.pg.close().catch(() => undefined);
  return openNewFiles(taken);
}

async function openNewFiles(taken: PgliteDirectory): Promise<Opened> {
  await taken.renew(unpackPgliteImage);
  return openFiles(taken.files);
}

async function openFiles(files: string): Promise<Opened> {
  // Loaded on use: the service listens before it opens its rows.
  const [{ PGlite }, { drizzle }, { migrate }] = await Promise.all([
    import('@electric-sql/pglite'),
    import('drizzle-orm/pglite'),
    import('drizzle-orm/pglite/migrator'),
  ]);
  const pg = await PGlite.create({ dataDir: files, postgresqlconf: PGLITE_SETTINGS });
  try {
    prepareStatements(pg);
    const damage = watchDamage(pg);
    const db = drizzle(pg);
    await migrate(db, sharedMigrations());
    await pg.exec('set enable_seqscan = off');
    return { pg, db, damage, schema: null };
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
    if (opened.damage.isSound()) taken.markIntact();
  } catch (error) {
    logger.warn('the embedded read models did not close cleanly; the next start replays them from the log', {
      cause: error,
    });
  } finally {
    taken.release();
  }
}
