// Checkpoints over the tree of the read models: under the projector's lock when signing, without it when only comparing.
import { join } from 'node:path';
import type { ReadModels } from '#projections/read-models.ts';
import type { Db } from '#projections/rows.ts';
import type { ProjectionRunner } from '#projections/runner.ts';
import { withTree } from '#projections/with-tree.ts';
import { checkpointFile } from '#src/adapters/event-log/checkpoint-file.ts';
import type { Config } from '#src/config.ts';
import type { Clock } from '#src/ports/clock.ts';
import type { Logger } from '#src/ports/logger.ts';
import type { ReadStore } from '#src/ports/read-store.ts';
import { keepCheckpoints } from '#src/usecases/transparency/checkpoint-loop.ts';
import {
  type CheckpointDeps,
  type Checkpoints,
  openCheckpoints,
} from '#src/usecases/transparency/checkpoints.ts';
import { verifierPrimitives } from './keys.ts';

/** Throws what a read of the event log throws. */
export const readCheckpoints = (
  { dataDir, eventStoreUrl }: Pick<Config, 'dataDir' | 'eventStoreUrl'>,
  deps: Omit<CheckpointDeps, 'checkpointKeep' | 'primitives'>,
): Promise<Checkpoints> =>
  openCheckpoints({
    ...deps,
    checkpointKeep: eventStoreUrl === null ? checkpointFile(join(dataDir, 'checkpoint.note')) : null,
    primitives: verifierPrimitives,
  });

export function signCheckpoints(parts: {
  readonly checkpoints: Checkpoints;
  readonly stores: { readonly readStore: Pick<ReadStore<Db>, 'open'>; readonly exclusive: boolean };
  readonly models: ReadModels;
  readonly runner: ProjectionRunner;
  readonly clock: Clock;
  readonly logger: Logger;
}): { stop(): Promise<void> } {
  const { checkpoints, stores, models, runner, clock, logger } = parts;
  // Embedded rows that do not fit the log are dropped at start.
  let learned = stores.exclusive;
  return keepCheckpoints({
    checkpoints: {
      ...checkpoints,
      async begin() {
        await checkpoints.begin();
        if (learned || checkpoints.origin() === null) return;
        const newest = await models.transparency.checkpoint();
        if (newest !== null) await checkpoints.learn(newest.note, ROWS);
        learned = true;
      },
    },
    rows: runner,
    clock,
    logger,
    locked: async (work) => withTree(await stores.readStore.open(), work),
    async unlocked(work) {
      // Before the tree: rows only grow, so the tree contains all leaves up to there.
      const position = runner.position();
      const tree = await models.transparency.tree();
      return work({ tree, position, readTile: (level, n) => models.transparency.tile(level, n) });
    },
  });
}

/** Rows that are refused because they are of another history show what this log once contained. */
const ROWS = 'the table transparency_checkpoint, which `relay rebuild` builds again';
