// Waiting for SQLite's locks without blocking the event loop: try, step aside for a moment, try again.

/** Another connection holds the lock that this call needs; nothing was done. */
export function isBusy(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  const code = 'errcode' in error ? error.errcode : undefined;
  // SQLITE_BUSY with its extended forms, and SQLITE_PROTOCOL (a lost race for the write-ahead log's locks).
  if (typeof code === 'number') return (code & 0xff) === 5 || (code & 0xff) === 15;
  // Deno leaves the code out where the failing call was exec().
  return /database is locked|locking protocol/.test(error.message);
}

/** Runs until it does not meet a lock, or throws the lock's error after `limitMs`. */
export async function patiently<T>(run: () => T, limitMs: number): Promise<T> {
  const end = performance.now() + limitMs;
  for (let tries = 0; ; tries++) {
    try {
      return run();
    } catch (error) {
      if (!isBusy(error) || performance.now() >= end) throw error;
    }
    await stepAside(tries);
  }
}

/** 1 to 2 ms at first, up to 1 to 12 ms later: another process's group takes about one. */
export function stepAside(tries: number): Promise<void> {
  return pause(1 + Math.random() * Math.min(1 + tries, 11));
}

export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

/** Lets timers, input and other callers run. */
export function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
