// Checkpoints over the tree of the read models: under the projector's lock where this process signs, as everybody reads
// it where it only looks.
import type { ReadModels } from '#projections/read-models.ts';
import type { Db } from '#projections/rows.ts';
import type { ProjectionRunner } from '#projections/runner.ts';
import { withTree } from '#projections/with-tree.ts';
import { Fault } from '#src/domain/refusal.ts';
import type { ReadStore } from '#src/ports/read-store.ts';
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
  readonly stores: { readonly readStore: Pick<ReadStore<Db>, 'open'>; readonly exclusive: boolean };
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
  // Embedded rows that do not fit the log are gone at once; their log has a file beside it instead.
  const learnOnce = stores.exclusive ? null : rememberRows(receiptLog, models);
  const begin = async () => {
    await receiptLog.begin();
    await learnOnce?.();
  };
  const following = { origin: receiptLog.origin, begin };
  const { stop } = keepCheckpoints({ ...parts, ...views, checkpoints: signing, receiptLog: following });
  return { standing: signing.standing, latest: () => receiptLog.latest()?.note ?? null, stop };
}

const ROWS = 'the table transparency_checkpoint, which `relay rebuild` tells anew';

/**
 * What shared rows tell as the newest, also where they are refused: they are of a log that this one once was. Asked until
 * they have answered once.
 */
function rememberRows(
  receiptLog: Pick<ReceiptLogKeeper, 'learn'>,
  { transparency }: ReadModels,
): () => Promise<void> {
  let done = false;
  return async () => {
    if (done) return;
    try {
      const newest = await transparency.checkpoint();
      done = newest === null || (await receiptLog.learn(newest.note, ROWS));
    } catch (error) {
      if (!(error instanceof Fault)) throw error;
    }
  };
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
