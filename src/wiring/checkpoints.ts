// When the tree is looked at and its head signed: soon after its rows moved, not too often, and never while nothing
// happens.
import type { ReadModels } from '#projections/read-models.ts';
import type { Db } from '#projections/rows.ts';
import type { ProjectionRunner } from '#projections/runner.ts';
import { withTree } from '#projections/with-tree.ts';
import { Fault } from '../domain/refusal.ts';
import type { Clock } from '../ports/clock.ts';
import { EventLogUnavailable } from '../ports/event-log.ts';
import type { Logger } from '../ports/logger.ts';
import type { ReadStore } from '../ports/read-store.ts';
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

export type CheckpointLoopDeps = {
  readonly receiptLog: Pick<ReceiptLogKeeper, 'begin' | 'origin'>;
  readonly checkpoints: Pick<Checkpoints, 'look'>;
  readonly runner: Pick<ProjectionRunner, 'position' | 'role' | 'reachedHead'>;
  /** Looks under the projector's lock. */
  readonly locked: ShowTree;
  /** Looks at what another process projects. */
  readonly unlocked: ShowTree;
  readonly clock: Pick<Clock, 'monotonic' | 'sleep'>;
  readonly logger: Logger;
};

const LOOK_MS = 1000;
/** Between two checkpoints: with the looks in between well within TRANSPARENCY.checkpointMs. */
const GAP_MS = 2500;
/** So long leaves wait for the process that projects; then any other signs. */
const TAKE_OVER_MS = 10_000;
/** For the last checkpoint of an orderly end. */
const LAST_MS = 2000;

/**
 * Begins at once. `stop` covers what no checkpoint is over yet, where that is quick, and resolves within 2 s; what is in
 * hand then, for a part that answers nothing, ends by itself with that part.
 */
export function keepCheckpoints(deps: CheckpointLoopDeps): { stop(): Promise<void> } {
  const { receiptLog, checkpoints, runner, clock, logger } = deps;
  const stopping = new AbortController();
  const state = {
    /** Where the rows stood at the last look. */
    looked: null as string | null,
    /** Since when it is known that somebody has to sign, and nobody has. */
    uncoveredAt: null as number | null,
    signedAt: Number.NEGATIVE_INFINITY,
    failing: false,
  };

  async function run(): Promise<void> {
    while (!stopping.signal.aborted) {
      await clock.sleep(LOOK_MS, stopping.signal);
      if (stopping.signal.aborted) return;
      try {
        await receiptLog.begin();
        await lookIfMoved(GAP_MS);
        state.failing = false;
      } catch (cause) {
        const away = cause instanceof EventLogUnavailable || cause instanceof Fault;
        if (away) continue;
        if (!state.failing) logger.warn('the receipt log cannot be looked at', { cause });
        state.failing = true;
      }
    }
  }

  async function lookIfMoved(gapMs: number): Promise<void> {
    const [position, role, now] = [runner.position(), runner.role(), clock.monotonic()];
    const overdue = state.uncoveredAt !== null && now - state.uncoveredAt >= TAKE_OVER_MS;
    if (role === null || (position === state.looked && !overdue)) return;
    // Whoever projected may be gone, and at rest nobody takes its place.
    const signs = role === 'projects' || (role === 'follows' && overdue);
    if (signs && now - state.signedAt < gapMs) return;
    const looked = await checkpoints.look(signs ? deps.locked : deps.unlocked, signs);
    if (looked === 'signed') state.signedAt = clock.monotonic();
    state.uncoveredAt = looked === 'uncovered' ? clock.monotonic() : null;
    // Whoever holds the lock may let it go without a word.
    if (looked !== 'busy') state.looked = position;
  }

  async function last(): Promise<void> {
    await running;
    if (receiptLog.origin() === null || !(await runner.reachedHead())) return;
    if (runner.role() === 'projects') await lookIfMoved(0);
  }

  const running = run();
  return {
    async stop() {
      stopping.abort();
      const timer = new AbortController();
      const ended = last().catch(() => undefined);
      await Promise.race([ended, clock.sleep(LAST_MS, timer.signal)]);
      timer.abort();
    },
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
