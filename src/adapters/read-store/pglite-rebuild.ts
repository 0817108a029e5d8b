// The embedded read store as a rebuild needs it. It has no COPY, and no other process beside it.
import type { PgliteDatabase } from 'drizzle-orm/pglite';
import type { RebuildStore } from '../../ports/rebuild-store.ts';
import { type PgliteOptions, pgliteReadStore } from './pglite.ts';

/** Throws `ReadStoreInUse` if another process has the directory. */
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
