// When the tree is looked at and its head signed: soon after its rows moved, not too often, and never while nothing
// happens.
import { Fault } from '#src/domain/refusal.ts';
import type { Clock } from '#src/ports/clock.ts';
import { EventLogUnavailable } from '#src/ports/event-log.ts';
import type { Logger } from '#src/ports/logger.ts';
import type { ReceiptLogKeeper } from './receipt-log.ts';
import type { Checkpoints, ShowTree } from './sign-checkpoint.ts';

/** The rows of the tree, and what this process does for them. None of these throws. */
export type TreeRows = {
  /** Of the last event whose rows can be read; null: none, or not known yet. */
  position(): string | null;
  /** `superseded`: they are of a newer version. null: they are not reached now. */
  role(): 'projects' | 'follows' | 'superseded' | null;
  /** Whether they have all that the log has now; waits for it up to a second. */
  reachedHead(): Promise<boolean>;
};

export type CheckpointLoopDeps = {
  readonly receiptLog: Pick<ReceiptLogKeeper, 'begin' | 'origin'>;
  readonly checkpoints: Pick<Checkpoints, 'look'>;
  readonly runner: TreeRows;
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
        if (!state.failing) logger.warn('the transparency log cannot be looked at', { cause });
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
    // Whoever holds the lock may let it go without a word; what refuses may be mended without one.
    if (looked !== 'busy' && looked !== 'refused') state.looked = position;
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
