// Schedules checkpoints: compares the tree with the last checkpoint and signs a new one soon after the rows change, at most
// every 2.5 s, and not while nothing changes.
import { Fault } from '#src/domain/refusal.ts';
import type { Clock } from '#src/ports/clock.ts';
import { EventLogUnavailable } from '#src/ports/event-log.ts';
import type { Logger } from '#src/ports/logger.ts';
import type { Checkpoints, ShowTree } from './checkpoints.ts';

/** The read models' part. None of these throws. */
export type TreeRows = {
  /** Of the last event in the readable rows; null: none, or not known yet. */
  position(): string | null;
  /** Only a process with `projects` signs; null: the rows are unavailable. */
  role(): 'projects' | 'follows' | null;
  /** Whether the rows have reached the event log's head; waits up to a second for it. */
  reachedHead(): Promise<boolean>;
};

export type CheckpointLoopDeps = {
  readonly checkpoints: Pick<Checkpoints, 'origin' | 'begin' | 'look'>;
  readonly rows: TreeRows;
  /** Under the projector's lock. */
  readonly locked: ShowTree;
  /** For rows that another process projects. */
  readonly unlocked: ShowTree;
  readonly clock: Pick<Clock, 'monotonic' | 'sleep'>;
  readonly logger: Logger;
};

const LOOK_MS = 1000;
/** Between two checkpoints; with the time between two checks well within TRANSPARENCY.checkpointMs. */
const GAP_MS = 2500;
/** If leaves wait this long, the projecting process is considered dead, and any other signs. */
const TAKE_OVER_MS = 10_000;
/** For the last checkpoint at shutdown. */
const LAST_MS = 2000;

/**
 * Checks once a second, if the rows have changed, until `stop`, which signs a last checkpoint if possible within 2 s. Calls
 * without an answer by then end with the store.
 */
export function keepCheckpoints(deps: CheckpointLoopDeps): { stop(): Promise<void> } {
  const { checkpoints, rows, clock, logger } = deps;
  const stopping = new AbortController();
  const state = {
    /** Projection position at the last check. */
    looked: null as string | null,
    /** Since when leaves are known to wait without a checkpoint. */
    uncoveredAt: null as number | null,
    signedAt: Number.NEGATIVE_INFINITY,
    failing: false,
  };

  async function run(): Promise<void> {
    while (!stopping.signal.aborted) {
      await clock.sleep(LOOK_MS, stopping.signal);
      if (stopping.signal.aborted) return;
      try {
        await checkpoints.begin();
        await lookIfMoved(GAP_MS);
        state.failing = false;
      } catch (cause) {
        // An unavailable event log or store is logged by its own part.
        if (cause instanceof EventLogUnavailable || cause instanceof Fault) continue;
        if (!state.failing) logger.warn('the transparency log cannot be read', { cause });
        state.failing = true;
      }
    }
  }

  async function lookIfMoved(gapMs: number): Promise<void> {
    const [position, role, now] = [rows.position(), rows.role(), clock.monotonic()];
    const overdue = state.uncoveredAt !== null && now - state.uncoveredAt >= TAKE_OVER_MS;
    if (role === null || (position === state.looked && !overdue)) return;
    const signs = role === 'projects' || overdue;
    if (signs && now - state.signedAt < gapMs) return;
    const looked = await checkpoints.look(signs ? deps.locked : deps.unlocked, signs);
    if (looked === 'signed') state.signedAt = clock.monotonic();
    state.uncoveredAt = looked === 'uncovered' ? clock.monotonic() : null;
    // A released lock and repaired rows do not change the projection position.
    if (looked !== 'busy' && looked !== 'refused') state.looked = position;
  }

  async function last(): Promise<void> {
    await running;
    if (checkpoints.origin() === null || !(await rows.reachedHead())) return;
    if (rows.role() === 'projects') await lookIfMoved(0);
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
