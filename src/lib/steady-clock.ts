// A wall clock that does not jump ahead.

type Clocks = { now(): number; monotonic(): number };

/**
 * Returns the wall clock, Unix ms, unless it is ahead of what has passed since it was read last by more than `toleranceMs`:
 * then the time advances by the monotonic clock, until the wall clock is no longer ahead of it. A wall clock that is set back
 * is followed. What was wrong at the first call stays unnoticed.
 */
export function steadyClock({ now, monotonic }: Clocks, toleranceMs: number): () => number {
  let offset = now() - monotonic();
  return () => {
    const [wall, passed] = [now(), monotonic()];
    const aheadMs = wall - (passed + offset);
    if (aheadMs > toleranceMs) return passed + offset;
    // Differences of the two clocks' rates, however long the process runs.
    if (aheadMs > -toleranceMs) offset += aheadMs;
    return wall;
  };
}
