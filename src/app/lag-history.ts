// How far the read models were behind the log, by minute: looked at on a beat of its own, because what lags is worth
// knowing also in a minute in which nobody asked this process for anything.
import type { LagSample } from '#src/http/deps.ts';
import type { Clock } from '#src/ports/clock.ts';

const LOOK_MS = 5000;
const MINUTE_MS = 60_000;
const MINUTES = 60;

/** What it returns: the last minutes' samples, each the most that was seen in it. It looks until `ending` aborts. */
export function lagHistory(
  lag: () => { readonly lagMs: number },
  clock: Pick<Clock, 'now' | 'sleep'>,
  ending: AbortSignal,
): () => readonly LagSample[] {
  const minutes = new Map<number, number>();
  const look = () => {
    const minute = Math.floor(clock.now() / MINUTE_MS);
    minutes.set(minute, Math.max(minutes.get(minute) ?? 0, lag().lagMs));
    for (const oldest of minutes.keys()) if (minutes.size > MINUTES) minutes.delete(oldest);
  };
  void untilEnding();
  return () => {
    look();
    return [...minutes].map(([minute, lagMs]) => ({ minute, lagMs }));
  };

  async function untilEnding(): Promise<void> {
    while (!ending.aborted) {
      look();
      await clock.sleep(LOOK_MS, ending);
    }
  }
}
