// Checkpoints over the tree of the read models: in one snapshot if this process signs, as every reader sees the rows if it
// only compares.
import type { ReadModels } from '#projections/read-models.ts';
import type { ProjectionRunner } from '#projections/runner.ts';
import { withTree } from '#projections/with-tree.ts';
import { keepCheckpoints } from '#src/usecases/transparency/keep-checkpoints.ts';
import type { ReceiptLogKeeper } from '#src/usecases/transparency/receipt-log.ts';
import {
  type CheckpointDeps,
  type Checkpoints,
  checkpoints,
  type ShowTree,
} from '#src/usecases/transparency/sign-checkpoint.ts';
import { verifierPrimitives } from './keys.ts';

export type CheckpointParts = Omit<CheckpointDeps, 'primitives'> & {
  readonly receiptLog: ReceiptLogKeeper;
  readonly models: ReadModels;
  readonly runner: ProjectionRunner;
};

export type KeptCheckpoints = Pick<Checkpoints, 'standing'> & {
  /** The newest that this process knows of, a signed note; null while there is none. Never throws. */
  latest(): string | null;
  stop(): Promise<void>;
};

export function wireCheckpoints(parts: CheckpointParts): KeptCheckpoints {
  const { receiptLog, models, runner } = parts;
  const signing = checkpoints({ ...parts, primitives: verifierPrimitives });
  const views = { locked: lockedTree(runner), unlocked: readTree(models, runner) };
  const begin = async () => {
    await receiptLog.begin();
    for (const note of runner.checkpointsElsewhere()) await receiptLog.learn(note, ELSEWHERE);
  };
  const following = { origin: receiptLog.origin, begin };
  const { stop } = keepCheckpoints({ ...parts, ...views, checkpoints: signing, receiptLog: following });
  return { standing: signing.standing, latest: () => receiptLog.latest()?.note ?? null, stop };
}

/** Read models of another generation, or of a history that the event log no longer has, show what it once held. */
const ELSEWHERE = 'another generation of the read models, which `relay rebuild --prune` drops';

/** In one snapshot. Throws what the store throws. */
const lockedTree =
  (runner: Pick<ProjectionRunner, 'open'>): ShowTree =>
  async (work) =>
    withTree(await runner.open(), work);

/** As the rows are read by everybody. Throws `Fault('read_models_unavailable')`. */
const readTree =
  (models: ReadModels, runner: Pick<ProjectionRunner, 'position'>): ShowTree =>
  async (work) => {
    // Before the tree: rows only advance, so the tree contains all up to there.
    const position = runner.position();
    const tree = await models.transparency.tree();
    return work({ tree, position, readTile: (level, n) => models.transparency.tile(level, n) });
  };
