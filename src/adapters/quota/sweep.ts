// Removes the windows that have ended, now and then and a few at a time.
import { type Db, sweepShared } from './shared-windows.ts';
import { pause } from './time.ts';

export type SweepPace = {
  /** ms between two sweeps. */
  readonly everyMs: number;
  /** Windows removed by one statement, and statements of one sweep. */
  readonly rows: number;
  readonly statements: number;
};

const PACE: SweepPace = { everyMs: 5 * 60_000, rows: 1000, statements: 100 };

/** A sweep that fails is made up for by the next one, or by another process. */
export async function sweepUntil(
  ending: AbortSignal,
  open: () => Promise<Db>,
  { everyMs, rows, statements }: SweepPace = PACE,
): Promise<void> {
  for (;;) {
    await pause(everyMs, ending);
    try {
      for (let left = statements; left > 0 && !ending.aborted; left--) {
        if ((await sweepShared(await open(), rows)) < rows) break;
      }
    } catch {
      // Postgres is away: that is told where the quotas are counted.
    }
    if (ending.aborted) return;
  }
}
