// The embedded read store as a rebuild needs it. It has no COPY, and nobody else beside it.
import { sql } from 'drizzle-orm';
import type { PgliteDatabase } from 'drizzle-orm/pglite';
import type { RebuildStore } from '../../ports/rebuild-store.ts';
import { liveSchema, MIGRATIONS_FOLDER, rebuildSchema } from './migrations.ts';
import { type PgliteOptions, pgliteReadStore } from './pglite.ts';

/** Throws `ReadStoreInUse` where another process has the directory. */
export function pgliteRebuildStore(options: PgliteOptions): RebuildStore<PgliteDatabase> {
  const store = pgliteReadStore(options);
  return {
    schema: rebuildSchema(MIGRATIONS_FOLDER),
    copies: false,
    liveSchema: (db) =>
      liveSchema(MIGRATIONS_FOLDER, async (query) => (await db.execute(sql.raw(query))).rows),
    async migrate() {
      await store.open();
    },
    async transaction(work, isolation) {
      const db = await store.open();
      const given = isolation === undefined ? undefined : { isolationLevel: isolation };
      return await db.transaction((tx) => work({ db: tx, copy: null }), given);
    },
    close: () => store.close(),
  };
}
