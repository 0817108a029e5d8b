// The embedded read store: PGlite in a directory of its own, for one process. Disposable: whatever is wrong with it,
// it is thrown away and replayed from the log. It leaves rows and checkpoint to the projections.
import { PGlite } from '@electric-sql/pglite';
import { drizzle, type PgliteDatabase } from 'drizzle-orm/pglite';
import { migrate } from 'drizzle-orm/pglite/migrator';
import type { Logger } from '../../ports/logger.ts';
import type { ReadStore } from '../../ports/read-store.ts';
import { MIGRATIONS_FOLDER, schemaVersion } from './migrations.ts';
import { type PgliteDirectory, takePgliteDirectory } from './pglite-directory.ts';
import { makePgliteDirectory, PGLITE_SETTINGS } from './pglite-new-directory.ts';

export type PgliteOptions = {
  /** Made where it is missing; nothing else may be in it. */
  readonly directory: string;
  readonly logger: Logger;
};

/** Takes the directory at once; throws `ReadStoreInUse` where another process has it. Opens at the first `open`. */
export function pgliteReadStore({ directory, logger }: PgliteOptions): ReadStore<PgliteDatabase> {
  const taken = takePgliteDirectory(directory, schemaVersion());
  let opening: Promise<Opened> | null = null;
  let isOpen = false;
  let closing: Promise<void> | null = null;
  return {
    driver: 'pglite',
    disposable: true,
    async open() {
      if (closing !== null) throw new Error('the embedded read models are closed');
      opening ??= openDirectory(taken, logger).catch((error) => {
        opening = null;
        throw error;
      });
      const { db } = await opening;
      isOpen = true;
      return db;
    },
    async health() {
      // Asked of the one thread that answers it: what is open works, and a query would only queue.
      return { ok: isOpen && closing === null };
    },
    close() {
      closing ??= closeDirectory(taken, opening);
      return closing;
    },
  };
}

type Opened = { readonly pg: PGlite; readonly db: PgliteDatabase };

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
  try {
    await taken.renew(makePgliteDirectory, false);
    return await openFiles(taken.files);
  } catch (error) {
    logger.warn('the embedded read models are made anew', { cause: error });
    await taken.renew(makePgliteDirectory, true);
    return openFiles(taken.files);
  }
}

async function openFiles(files: string): Promise<Opened> {
  const pg = await PGlite.create({ dataDir: files, postgresqlconf: PGLITE_SETTINGS });
  try {
    const db = drizzle(pg);
    await migrate(db, { migrationsFolder: MIGRATIONS_FOLDER });
    return { pg, db };
  } catch (error) {
    await pg.close().catch(() => undefined);
    throw error;
  }
}

async function closeDirectory(taken: PgliteDirectory, opening: Promise<Opened> | null): Promise<void> {
  try {
    const opened = await opening?.catch(() => null);
    if (opened) {
      await opened.pg.close();
      taken.markIntact();
    }
  } finally {
    taken.release();
  }
}
