// Checkpoints over the tree of the read models: under the projector's lock where this process signs, as everybody reads
// it where it only looks.
import type { ReadModels } from '#projections/read-models.ts';
import type { Db } from '#projections/rows.ts';
import type { ProjectionRunner } from '#projections/runner.ts';
import { withTree } from '#projections/with-tree.ts';
import type { ReadStore } from '../ports/read-store.ts';
import { keepCheckpoints } from '../usecases/keep-checkpoints.ts';
import type { ReceiptLogKeeper } from '../usecases/receipt-log.ts';
import {
  type CheckpointDeps,
  type Checkpoints,
  checkpoints,
  type ShowTree,
} from '../usecases/sign-checkpoint.ts';
import { verifierPrimitives } from './keys.ts';

export type CheckpointParts = Omit<CheckpointDeps, 'primitives'> & {
  readonly receiptLog: ReceiptLogKeeper;
  readonly stores: { readonly readStore: Pick<ReadStore<Db>, 'open'> };
  readonly models: ReadModels;
  readonly runner: ProjectionRunner;
};

export type KeptCheckpoints = Pick<Checkpoints, 'standing'> & {
  /** The newest that this process knows of, a signed note; null while there is none. Never throws. */
  latest(): string | null;
  stop(): Promise<void>;
};

export function wireCheckpoints(parts: CheckpointParts): KeptCheckpoints {
  const { receiptLog, models, runner, stores } = parts;
  const signing = checkpoints({ ...parts, primitives: verifierPrimitives });
  const views = { locked: lockedTree(stores.readStore), unlocked: readTree(models, runner) };
  const { stop } = keepCheckpoints({ ...parts, ...views, checkpoints: signing });
  return { standing: signing.standing, latest: () => receiptLog.latest()?.note ?? null, stop };
}

/** Under the projector's lock, in one transaction. Throws what the store throws. */
const lockedTree =
  (store: Pick<ReadStore<Db>, 'open'>): ShowTree =>
  async (work) =>
    withTree(await store.open(), work);

/** As the rows are read by everybody. Throws `Fault('read_models_unavailable')`. */
const readTree =
  (models: ReadModels, runner: Pick<ProjectionRunner, 'position'>): ShowTree =>
  async (work) => {
    // Before the tree: rows only go on, so that it holds all that stands up to there.
    const position = runner.position();
    const tree = await models.transparency.tree();
    return work({ tree, position, readTile: (level, n) => models.transparency.tile(level, n) });
  };
