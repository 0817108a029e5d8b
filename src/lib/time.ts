// Waiting: sleep, time limits, growing pauses. Use cases take a Clock instead; this is for adapters, cli and app.

/** The part of an AbortSignal that waiting needs. */
export type AbortSignalLike = {
  readonly aborted: boolean;
  addEventListener(type: 'abort', listener: () => void, options?: { once?: boolean }): void;
  removeEventListener(type: 'abort', listener: () => void): void;
};

/** An AbortController and its signal in one, without events: for the timers of every call, at a tenth of the cost. */
export class Cancel implements AbortSignalLike {
  aborted = false;
  readonly #listeners = new Set<() => void>();

  abort(): void {
    this.aborted = true;
    for (const listener of this.#listeners) listener();
    this.#listeners.clear();
  }
  addEventListener(_type: 'abort', listener: () => void): void {
    this.#listeners.add(listener);
  }
  removeEventListener(_type: 'abort', listener: () => void): void {
    this.#listeners.delete(listener);
  }
}

/** Aborts as soon as one of `signals` does, or has. `release` frees the listeners: call it when nothing waits any more. */
export function anyOf(...signals: readonly AbortSignalLike[]): {
  readonly signal: AbortSignalLike;
  release(): void;
} {
  const first = new Cancel();
  const end = () => first.abort();
  for (const signal of signals) {
    if (signal.aborted) end();
    signal.addEventListener('abort', end, { once: true });
  }
  return {
    signal: first,
    release() {
      for (const signal of signals) signal.removeEventListener('abort', end);
    },
  };
}

/** The longest delay a timer accepts; a longer one fires at once. */
const TIMER_MAX_MS = 2 ** 31 - 1;

/** Resolves after `ms`, or as soon as one of the signals aborts. Never rejects. */
export function sleep(ms: number, ...signals: readonly AbortSignalLike[]): Promise<void> {
  return new Promise((resolve) => {
    const end = () => {
      clearTimeout(timer);
      for (const signal of signals) signal.removeEventListener('abort', end);
      resolve();
    };
    const timer = setTimeout(end, Math.min(Math.max(0, ms), TIMER_MAX_MS));
    for (const signal of signals) {
      if (signal.aborted) return end();
      signal.addEventListener('abort', end, { once: true });
    }
  });
}

/**
 * The outcome of `work`; after `ms` rejects with `onTimeout()` instead. A later outcome of `work` is ignored. An answer
 * that arrived while the thread was busy counts: an overdue timer fires before input is read, hence the second timer.
 */
export function withTimeout<T>(work: Promise<T>, ms: number, onTimeout: () => Error): Promise<T> {
  return new Promise((resolve, reject) => {
    let timer = setTimeout(
      () => {
        timer = setTimeout(() => reject(onTimeout()), 0);
      },
      Math.max(0, ms),
    );
    work.then(resolve, reject).finally(() => clearTimeout(timer));
  });
}

/** Whether `work` succeeds within `ms`. Never rejects. */
export function succeedsWithin(ms: number, work: Promise<unknown>): Promise<boolean> {
  return withTimeout(work, ms, () => new Error(`no answer within ${ms} ms`)).then(
    () => true,
    () => false,
  );
}

/** Whether `work` succeeds within `ms` by this clock: for use cases, whose time is a port. Never rejects. */
export async function succeedsByClock(
  clock: { sleep(ms: number, signal: AbortSignalLike): Promise<void> },
  ms: number,
  work: Promise<unknown>,
): Promise<boolean> {
  const timer = new Cancel();
  const succeeds = work.then(
    () => true,
    () => false,
  );
  // An answer that arrived while the thread was busy counts: see `withTimeout`.
  const late = clock.sleep(ms, timer).then(() => clock.sleep(0, timer));
  try {
    return await Promise.race([succeeds, late.then(() => false)]);
  } finally {
    timer.abort();
  }
}

/** The outcome of `work`, or null as soon as `signal` aborts. A later outcome of `work` is ignored. */
export function unlessAborted<T>(work: Promise<T>, signal: AbortSignalLike): Promise<T | null> {
  return new Promise((resolve, reject) => {
    const end = () => resolve(null);
    if (signal.aborted) end();
    signal.addEventListener('abort', end, { once: true });
    work.then(resolve, reject).finally(() => signal.removeEventListener('abort', end));
  });
}

/**
 * The pause in ms before the next attempt after `failures` failures in a row: doubles from 50 to 1000, with
 * jitter over its upper half, so that clients that lost the same server do not reconnect at the same moment.
 */
export function growingPause(failures: number): number {
  return Math.min(1000, 50 * 2 ** failures) * (0.5 + Math.random() / 2);
}

/** Runs `work` with a signal that aborts as soon as one of the signals does. Leaves no listener behind. */
export async function underSignals<T>(
  signals: readonly (AbortSignalLike | undefined)[],
  work: (signal: AbortSignalLike) => Promise<T>,
): Promise<T> {
  const either = anyOf(...signals.filter((signal) => signal !== undefined));
  try {
    return await work(either.signal);
  } finally {
    either.release();
  }
}
