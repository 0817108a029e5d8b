// The transparency tree for its signing process: tree, tiles and position of one moment.
import type { ReadTile } from '#src/domain/transparency/tiles.ts';
import type { Tree } from '#src/domain/transparency/tree.ts';
import { readHead } from './projection.ts';
import { readModelsUnavailable } from './read-models.ts';
import type { Db } from './rows.ts';
import { transparencyQueries } from './transparency/query.ts';

export type LoggedTree = {
  readonly tree: Tree;
  /** Position of the last event in these rows, whether it was a leaf or not; null: none. */
  readonly position: string | null;
  /** Only while `work` runs. */
  readonly readTile: ReadTile;
};

/**
 * Returns the result of `work`, in one snapshot of the rows. While `work` runs an embedded store answers no other query:
 * `work` must neither query the read models nor wait for them. Throws what the store and `work` throw.
 */
export async function withTree<T>(db: Db, work: (logged: LoggedTree) => Promise<T>): Promise<T> {
  return db.transaction(
    async (tx) => {
      const rows = transparencyQueries(tx);
      const tree = await rows.tree();
      const { position, loss } = await readHead(tx);
      if (loss !== null) throw readModelsUnavailable(new Error(`the read models have lost rows: ${loss}`));
      return work({ tree, position, readTile: (level, n) => rows.tile(level, n) });
    },
    { isolationLevel: 'repeatable read' },
  );
}
