// Removes the windows that have ended, now and then and a few at a time.
import type { Clock } from '../../ports/clock.ts';
import { type Db, sweepShared } from './shared-windows.ts';
import { pause } from './time.ts';

export type SweepOptions = {
  readonly ending: AbortSignal;
  readonly open: () => Promise<Db>;
  readonly clock: Pick<Clock, 'monotonic'>;
  /** ms between two sweeps. */
  readonly everyMs?: number;
  /** Windows removed by one statement. */
  readonly rows?: number;
  readonly wait?: typeof pause;
};

/** While more have ended: a statement, and then so many times its length for others. */
const REST = 4;
const REST_MIN_MS = 10;

/** A sweep ends when nothing is left. One that fails is made up for by the next one, or by another process. */
export async function sweepUntil({
  ending,
  open,
  clock,
  everyMs = 5 * 60_000,
  rows = 1000,
  wait = pause,
}: SweepOptions): Promise<void> {
  let more = false;
  let rest = 0;
  while (!ending.aborted) {
    await wait(more ? rest : everyMs, ending);
    if (ending.aborted) return;
    try {
      const db = await open();
      const begun = clock.monotonic();
      more = (await sweepShared(db, rows)) === rows;
      rest = Math.max(REST_MIN_MS, REST * (clock.monotonic() - begun));
    } catch {
      // Postgres is away: that is told where the quotas are counted.
      more = false;
    }
  }
}
