// A value that exists at times, and those who wait for it.
import { type AbortSignalLike, Cancel } from './time.ts';

export type Latch<T> = {
  /** null: there is none now. */
  value(): T | null;
  set(value: T): void;
  clear(): void;
  /** The value as soon as there is one; null after `ms`. Who gives up leaves nothing behind, however long there is none. */
  wait(ms: number): Promise<T | null>;
  waiting(): number;
};

export function latch<T>(clock: { sleep(ms: number, signal?: AbortSignalLike): Promise<void> }): Latch<T> {
  const waiters = new Set<(value: T | null) => void>();
  let held: T | null = null;
  return {
    value: () => held,
    set(value) {
      held = value;
      for (const answer of waiters) answer(value);
    },
    clear() {
      held = null;
    },
    wait(ms) {
      if (held !== null) return Promise.resolve(held);
      return new Promise((resolve) => {
        const timer = new Cancel();
        const answer = (value: T | null) => {
          waiters.delete(answer);
          timer.abort();
          resolve(value);
        };
        waiters.add(answer);
        void clock.sleep(ms, timer).then(() => answer(null));
      });
    },
    waiting: () => waiters.size,
  };
}
