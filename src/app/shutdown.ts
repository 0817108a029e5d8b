// How the service ends: its parts in reverse order, within one limit of time for all of them together.
import type { Clock } from '#src/ports/clock.ts';
import type { Logger } from '#src/ports/logger.ts';
import type { Slots } from '#src/usecases/execution/process-limits.ts';

export type Undo = {
  /** Adds a step that frees what was opened. */
  push(step: () => Promise<void>): void;
};

export type Ending = Undo & {
  /** Aborts when the end begins: what is in flight is finished, without waiting for anything that may take long. */
  readonly stopping: AbortSignal;
  /** Aborts when nothing is waited for, repeated or begun any more. */
  readonly signal: AbortSignal;
  abort(): void;
  /** ms that are left for what is in flight. Before `end` all of them. */
  left(): number;
  /** Runs all steps, the last added first; resolves after 120 s at the latest. Throws a failed step's error, after all. */
  end(): Promise<void>;
};

const STOP_MS = 120_000;
/** Of those: to close what is open when nothing is in flight any more. The rest is longer than any answer takes. */
const CLOSING_MS = 8_000;

export function orderlyEnding(clock: Pick<Clock, 'monotonic' | 'sleep'>): Ending {
  const steps = new AsyncDisposableStack();
  const stopping = new AbortController();
  const aborting = new AbortController();
  let begun: number | null = null;
  let ended: Promise<void> | null = null;

  async function endWithinLimit(): Promise<void> {
    const timer = new AbortController();
    try {
      await Promise.race([steps.disposeAsync(), clock.sleep(STOP_MS, timer.signal)]);
    } catch (error) {
      throw error instanceof SuppressedError ? error.suppressed : error;
    } finally {
      timer.abort();
    }
  }

  return {
    stopping: stopping.signal,
    signal: aborting.signal,
    abort() {
      stopping.abort();
      aborting.abort();
    },
    push: (step) => steps.defer(step),
    left() {
      const gone = begun === null ? 0 : clock.monotonic() - begun;
      return Math.max(0, STOP_MS - CLOSING_MS - gone);
    },
    end() {
      begun ??= clock.monotonic();
      stopping.abort();
      ended ??= endWithinLimit();
      return ended;
    },
  };
}

export type InFlight = {
  readonly slots: Pick<Slots, 'inFlight'>;
  readonly log: { health(): Promise<{ readonly ok: boolean }> };
  readonly clock: Pick<Clock, 'monotonic' | 'sleep'>;
  readonly logger: Logger;
};

const LOOK_MS = 100;
/** Nothing can be finished without the log. */
const SILENCE_MS = 10_000;

/**
 * Waits for the executions that continue behind their answers: at most `left` ms, and only while the log answers now and
 * then. A job that is cut off is closed by recovery.
 */
export async function untilIdle({ slots, log, clock, logger }: InFlight, left: number): Promise<void> {
  const begun = clock.monotonic();
  for (let heard = begun; slots.inFlight() > 0; await clock.sleep(LOOK_MS)) {
    if ((await log.health()).ok) heard = clock.monotonic();
    const now = clock.monotonic();
    if (now - begun < left && now - heard < SILENCE_MS) continue;
    logger.warn('the service stops before all executions have ended; recovery closes their jobs', {
      inFlight: slots.inFlight(),
    });
    return;
  }
}
