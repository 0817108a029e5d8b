// The transparency tree for who signs it: read while nobody projects, so that tree, tiles and position are of one moment.
import type { ReadTile } from '#src/domain/transparency/tiles.ts';
import type { Tree } from '#src/domain/transparency/tree.ts';
import { readCheckpoints, tryProjectorLock } from './checkpoint.ts';
import type { Db } from './rows.ts';
import { transparencyQueries } from './transparency/query.ts';

export type LoggedTree = {
  readonly tree: Tree;
  /** Position of the last event that these rows tell, whether it was a leaf or not; null: of none. */
  readonly position: string | null;
  /** Only while `work` runs. */
  readonly readTile: ReadTile;
};

/**
 * What `work` says, told in one transaction under the projector's lock; `busy`, at once, where another holds the lock.
 * While `work` runs nobody projects, and an embedded store answers nobody else: it must neither ask the read models nor
 * wait for them. Throws what the store and `work` throw.
 */
export async function withTree<T>(db: Db, work: (logged: LoggedTree) => Promise<T>): Promise<T | 'busy'> {
  return db.transaction(async (tx) => {
    if (!(await tryProjectorLock(tx))) return 'busy';
    const rows = transparencyQueries(tx);
    const tree = await rows.tree();
    const position = (await readCheckpoints(tx)).told.get('transparency') ?? null;
    return work({ tree, position, readTile: (level, n) => rows.tile(level, n) });
  });
}
