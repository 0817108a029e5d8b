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
  { dataDir }: Pick<Config, 'dataDir'>,
  deps: Omit<CheckpointDeps, 'checkpointKeep' | 'primitives'>,
): Promise<Checkpoints> =>
  openCheckpoints({
    ...deps,
    checkpointKeep: checkpointFile(join(dataDir, 'checkpoint.note')),
    primitives: verifierPrimitives,
  });

export function signCheckpoints(parts: {
  readonly checkpoints: Checkpoints;
  readonly readStore: Pick<ReadStore<Db>, 'open'>;
  readonly models: ReadModels;
  readonly runner: ProjectionRunner;
  readonly clock: Clock;
  readonly logger: Logger;
}): { stop(): Promise<void> } {
  const { readStore, models, runner, ...rest } = parts;
  return keepCheckpoints({
    ...rest,
    rows: runner,
    locked: async (work) => withTree(await readStore.open(), work),
    async unlocked(work) {
      // Before the tree: rows only grow, so the tree contains all leaves up to there.
      const position = runner.position();
      const tree = await models.transparency.tree();
      return work({ tree, position, readTile: (level, n) => models.transparency.tile(level, n) });
    },
  });
}
