// The runner: checkpoint → events → project → write, batch after batch, in every process. One projects at a time; the
// others follow the checkpoint and take over when it stands still. It outlives the absence of the store and of the log.

import { LIMITS } from '#src/domain/limits.ts';
import { makeCatchUp } from './catch-up.ts';
import { modelSet } from './checkpoint.ts';
import { pendingEvents } from './pending.ts';
import { makeProgress } from './progress.ts';
import { KEEP_ALL, makePurge, type RetentionMs } from './purge.ts';
import { READ_MODELS, type ReadModel } from './registry.ts';
import { type Db, tableShapes } from './rows.ts';
import { projectAll, type Role, RowsMoved, type RunnerDeps, type Session } from './session.ts';
import { RowsRefused, standingRows } from './session-start.ts';
import { makeVersionNotice } from './version-notice.ts';

export type RunnerOptions = {
  readonly models?: readonly ReadModel[];
  /** Events in one transaction at most: it blocks the event loop of an embedded store for its length. */
  readonly batchSize?: number;
  /** How long rows are kept; without it, for ever. */
  readonly retentionMs?: RetentionMs;
};

export type ProjectionRunner = {
  /** Position of the last event whose rows can be read; null: none, or not known yet. */
  position(): string | null;
  /** Whether the rows have reached `position`; waits for it up to `timeoutMs`. Never throws. */
  caughtUp(position: string, timeoutMs: number): Promise<boolean>;
  /**
   * Whether the rows have reached the log's head as it is now, waiting up to a second: only then does a miss mean
   * that there is no such thing. false also where the log cannot be asked. Never throws.
   */
  reachedHead(): Promise<boolean>;
  /**
   * Whether the rows have caught up with the log's head as it was when this runner first saw them, or saw them taken
   * back; waits for it up to a second. Before, lists and counts are of a part of the log. Never throws.
   */
  ready(): Promise<boolean>;
  /** `lagEvents`: null where it cannot be known. `lagMs`: 0 while the rows have all that the log delivered. */
  lag(): { readonly lagEvents: number | null; readonly lagMs: number };
  /**
   * What this process does for the rows; null: they are not reached now. At rest more than one may say `projects`: only
   * the projector's lock tells who does (`withTree`).
   */
  role(): Role | null;
  /** The rows tell what the log does not, and only a rebuild makes them answer again. */
  refused(): boolean;
  /** Ends after the batch in hand, which a database that is frozen may keep: it is waited for 5 s at most. */
  stop(): Promise<void>;
};

const BATCH_SIZE = 200;
const STOP_MS = 5000;
const BACKOFF_MS = { first: 100, last: 1000 };

/** Starts at once. */
export function startProjections(deps: RunnerDeps, options: RunnerOptions = {}): ProjectionRunner {
  const { clock, logger, log } = deps;
  const { models = READ_MODELS, batchSize = BATCH_SIZE, retentionMs = KEEP_ALL } = options;
  const progress = makeProgress(clock);
  const catchUp = makeCatchUp({ clock, logger });
  const purge = makePurge(deps, retentionMs);
  const notice = makeVersionNotice(logger);
  const ending = new AbortController();
  const state = { session: null as Session | null, failures: 0, refused: false };
  const running = run();
  return {
    position: progress.position,
    caughtUp: progress.reached,
    async reachedHead() {
      try {
        const head = await log.head();
        return head === null || (await progress.reached(head, LIMITS.answerWaitMs.max));
      } catch {
        return false;
      }
    },
    ready: () => catchUp.ready(LIMITS.answerWaitMs.max),
    lag: () => lagOf(state.session, progress.caughtUpAt(), clock.monotonic()),
    role: () => state.session?.role ?? null,
    refused: () => state.refused,
    async stop() {
      ending.abort();
      const ended = new AbortController();
      await Promise.race([running, clock.sleep(STOP_MS, ended.signal)]);
      ended.abort();
      progress.end();
    },
  };

  async function run(): Promise<void> {
    while (!ending.signal.aborted) {
      try {
        await runSession();
      } catch (error) {
        if (error instanceof RowsMoved) continue;
        if (error instanceof RowsRefused) refused();
        if (state.failures++ === 0) logger.warn('the read models stand still', { cause: error });
        const wait = Math.min(BACKOFF_MS.last, BACKOFF_MS.first * 2 ** (state.failures - 1));
        await clock.sleep(wait, ending.signal);
      }
    }
  }

  /** What was known of them before, by this process, holds no longer. */
  function refused(): void {
    state.refused = true;
    progress.set(null);
    catchUp.lost();
  }

  /** A store that opens proves nothing yet: only work that was done ends the failures and their growing pauses. */
  function worked(): void {
    if (state.failures > 0) logger.info('the read models are followed again');
    state.failures = 0;
  }

  /** A store that answers, a checkpoint of this log, and a subscription from there on, until one of them fails. */
  async function runSession(): Promise<void> {
    const db: Db = await deps.store.open();
    const set = modelSet(models);
    const projector = { db, models, set, shapes: tableShapes(models) };
    const standing = await standingRows({ ...deps, notice }, projector);
    state.refused = false;
    const after = standing.checkpoint?.position ?? null;
    progress.set(after);
    catchUp.begin(after, await log.head());
    const subscription = new AbortController();
    const end = () => subscription.abort();
    ending.signal.addEventListener('abort', end, { once: true });
    const { signal } = subscription;
    try {
      const pending = pendingEvents(deps, { after, capacity: 4 * batchSize, signal });
      state.session = { projector, pending, nearHead: false, ...standing };
      const parts = { progress, catchUp, purge, notice, worked };
      await projectAll(state.session, { ...deps, ...parts, batchSize, signal: ending.signal });
    } finally {
      state.session = null;
      ending.signal.removeEventListener('abort', end);
      end();
    }
  }
}

function lagOf(
  session: Session | null,
  caughtUpAt: number,
  now: number,
): ReturnType<ProjectionRunner['lag']> {
  if (session === null || !session.pending.complete) {
    return { lagEvents: null, lagMs: Math.round(now - caughtUpAt) };
  }
  const { pending } = session;
  const oldest = pending.oldestArrival();
  return {
    lagEvents: pending.full ? null : pending.size,
    lagMs: oldest === null ? 0 : Math.round(now - oldest),
  };
}
