// Where the rows of this process are in the event log: the readers that wait for a later position, and whether the rows have
// caught up with the head that the log had at first; until then counts and lists cover a part of the log only.
import { latch } from '#src/lib/latch.ts';
import type { Clock } from '#src/ports/clock.ts';
import type { Logger } from '#src/ports/logger.ts';

export type Progress = {
  /** Position of the last event whose rows can be read; null: none, or not known yet. */
  position(): string | null;
  /** The rows are at `from` and the log's head is `head`. Rows that were rolled back have to catch up again. */
  begin(from: string | null, head: string | null): void;
  /** The rows are not of this log: none can be read, and they have to catch up from the first event. */
  lost(): void;
  /** Rows up to `position` can be read; `events`: how many of them were projected here since the last call. */
  moved(position: string, events: number): void;
  /** Whether a reader waits. */
  isAwaited(): boolean;
  /** true as soon as rows up to `position` can be read; false after `timeoutMs`, or at the end. */
  reached(position: string, timeoutMs: number): Promise<boolean>;
  /** Whether the rows have caught up; waits for it up to `timeoutMs`. Never throws. */
  ready(timeoutMs: number): Promise<boolean>;
  /** The rows contain all that the log has delivered. */
  noteCaughtUp(): void;
  /** Monotonic ms of the last `noteCaughtUp`, or of the start. */
  caughtUpAt(): number;
  /** Answers false to all waiting readers, now and later. */
  end(): void;
};

type Waiter = { readonly position: string; readonly answer: (reached: boolean) => void };
type Replay = { readonly to: string; readonly since: number; events: number; loggedAt: number | null };

/** A replay of more events than this is logged. */
const LONG_REPLAY = 2000;
const LOG_EVERY_MS = 5000;

/** `onWait` is called whenever a reader begins to wait. */
export function makeProgress(
  { clock, logger }: { readonly clock: Clock; readonly logger: Logger },
  onWait: () => void = () => undefined,
): Progress {
  const waiters = new Set<Waiter>();
  let current: string | null = null;
  let replay: Replay | null = null;
  const ready = latch<true>(clock);
  let caughtUpAt = clock.monotonic();
  let ended = false;
  return {
    position: () => current,
    begin(from, head) {
      if (isBefore(from, current)) ready.clear();
      replay = head === null ? null : { to: head, since: clock.monotonic(), events: 0, loggedAt: null };
      arrive(from);
    },
    lost() {
      ready.clear();
      current = null;
      replay = null;
    },
    moved(position, events) {
      if (replay !== null) {
        replay.events += events;
        logProgress(replay);
      }
      arrive(position);
    },
    isAwaited: () => waiters.size > 0,
    reached(position, timeoutMs) {
      if (!isBefore(current, position)) return Promise.resolve(true);
      if (ended || timeoutMs <= 0) return Promise.resolve(false);
      return new Promise((resolve) => {
        const timer = new AbortController();
        const waiter: Waiter = {
          position,
          answer(reached) {
            waiters.delete(waiter);
            timer.abort();
            resolve(reached);
          },
        };
        waiters.add(waiter);
        onWait();
        void clock.sleep(timeoutMs, timer.signal).then(() => waiter.answer(false));
      });
    },
    ready: async (timeoutMs) => (await ready.wait(timeoutMs)) !== null,
    noteCaughtUp() {
      caughtUpAt = clock.monotonic();
    },
    caughtUpAt: () => caughtUpAt,
    end() {
      ended = true;
      for (const waiter of waiters) waiter.answer(false);
    },
  };

  function arrive(position: string | null): void {
    current = position;
    for (const waiter of waiters) if (!isBefore(current, waiter.position)) waiter.answer(true);
    if (replay !== null && isBefore(current, replay.to)) return;
    if (replay !== null && replay.loggedAt !== null) {
      logger.info('the read models have caught up with the event log', figures(replay));
    }
    replay = null;
    ready.set(true);
  }

  function logProgress(replaying: Replay): void {
    const now = clock.monotonic();
    if (replaying.loggedAt === null) {
      if (replaying.events < LONG_REPLAY) return;
      logger.info('replaying the event log into the read models');
    } else {
      if (now - replaying.loggedAt < LOG_EVERY_MS) return;
      logger.info('the read models are still being replayed', figures(replaying));
    }
    replaying.loggedAt = now;
  }

  function figures({ events, since }: Replay): { events: number; seconds: number; eventsPerSecond: number } {
    const seconds = Math.max(0.001, (clock.monotonic() - since) / 1000);
    return { events, seconds: Math.round(seconds), eventsPerSecond: Math.round(events / seconds) };
  }
}

/** Positions compare as text; null is before the first. */
const isBefore = (a: string | null, b: string | null): boolean => b !== null && (a === null || a < b);
