// Checkpoints over the tree of the read models: in one snapshot when signing, as every reader sees them when only comparing.
import type { ReadModels } from '#projections/read-models.ts';
import type { ProjectionRunner } from '#projections/runner.ts';
import { withTree } from '#projections/with-tree.ts';
import type { Clock } from '#src/ports/clock.ts';
import type { Logger } from '#src/ports/logger.ts';
import { keepCheckpoints } from '#src/usecases/transparency/checkpoint-loop.ts';
import type { Checkpoints } from '#src/usecases/transparency/checkpoints.ts';

export function signCheckpoints(parts: {
  readonly checkpoints: Checkpoints;
  readonly models: ReadModels;
  readonly runner: ProjectionRunner;
  readonly clock: Clock;
  readonly logger: Logger;
}): { stop(): Promise<void> } {
  const { checkpoints, models, runner, clock, logger } = parts;
  return keepCheckpoints({
    checkpoints: {
      ...checkpoints,
      async begin() {
        await checkpoints.begin();
        for (const note of runner.checkpointsElsewhere()) await checkpoints.learn(note, ELSEWHERE);
      },
    },
    rows: runner,
    clock,
    logger,
    locked: async (work) => withTree(await runner.open(), work),
    async unlocked(work) {
      // Before the tree: rows only grow, so the tree contains all leaves up to there.
      const position = runner.position();
      const tree = await models.transparency.tree();
      return work({ tree, position, readTile: (level, n) => models.transparency.tile(level, n) });
    },
  });
}

/** Generations of a history that the event log no longer has show what it once contained. */
const ELSEWHERE = 'another generation of the read models, which `relay rebuild --prune` drops';
