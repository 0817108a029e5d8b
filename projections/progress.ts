// The projection position of this process's rows, and the readers that wait for a later one.
import type { Clock } from '#src/ports/clock.ts';

export type Progress = {
  /** Position of the last event whose rows can be read; null: none, or not known yet. */
  position(): string | null;
  /** Rows up to `position` can be read; it goes back only if the rows did. */
  set(position: string | null): void;
  /** Whether a reader waits. */
  isAwaited(): boolean;
  /** true as soon as rows up to `position` can be read; false after `timeoutMs`, or at the end. */
  reached(position: string, timeoutMs: number): Promise<boolean>;
  /** The rows contain all that the log has delivered. */
  noteCaughtUp(): void;
  /** Monotonic ms of the last `noteCaughtUp`, or of the start. */
  caughtUpAt(): number;
  /** Answers false to all waiting readers, now and later. */
  end(): void;
};

type Waiter = { readonly position: string; readonly answer: (reached: boolean) => void };

/** `onWait` is called whenever a reader begins to wait. */
export function makeProgress(clock: Clock, onWait: () => void = () => undefined): Progress {
  const waiters = new Set<Waiter>();
  let current: string | null = null;
  let ended = false;
  let caughtUpAt = clock.monotonic();
  const isReached = (position: string) => current !== null && current >= position;
  return {
    position: () => current,
    isAwaited: () => waiters.size > 0,
    set(position) {
      current = position;
      for (const waiter of waiters) if (isReached(waiter.position)) waiter.answer(true);
    },
    reached(position, timeoutMs) {
      if (isReached(position)) return Promise.resolve(true);
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
    noteCaughtUp() {
      caughtUpAt = clock.monotonic();
    },
    caughtUpAt: () => caughtUpAt,
    end() {
      ended = true;
      for (const waiter of waiters) waiter.answer(false);
    },
  };
}
