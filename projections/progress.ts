// How far the rows are, and who waits for them to come further.
import type { Clock } from '#src/ports/clock.ts';

export type Progress = {
  /** Position of the last event whose rows can be read; null: none, or not known yet. */
  position(): string | null;
  /** Says that rows up to `position` can be read; it goes back only where the rows did. */
  set(position: string | null): void;
  /** true as soon as rows up to `position` can be read; false after `timeoutMs`, or at the end. */
  reached(position: string, timeoutMs: number): Promise<boolean>;
  /** Says that the rows have all that the log delivered. */
  noteCaughtUp(): void;
  /** Monotonic ms of the last such note; of the beginning, where there was none. */
  caughtUpAt(): number;
  /** Answers false to all who wait, now and later. */
  end(): void;
};

type Waiter = { readonly position: string; readonly answer: (reached: boolean) => void };

export function makeProgress(clock: Clock): Progress {
  const waiters = new Set<Waiter>();
  let current: string | null = null;
  let ended = false;
  let caughtUpAt = clock.monotonic();
  const isReached = (position: string) => current !== null && current >= position;
  return {
    position: () => current,
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
