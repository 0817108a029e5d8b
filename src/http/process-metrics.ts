// How this process answers: a few counters and the durations of its last answers. Gone with the process.
import { Type } from '@sinclair/typebox';
import { Closed, Count, Instant, Nullable } from '#src/http/routes/schema-parts.ts';
import type { Clock } from '#src/ports/clock.ts';
import type { LagSample } from './deps.ts';

export const ProcessMetrics = Closed({
  uptimeMs: Count,
  requests: Count,
  inFlight: Count,
  p50Ms: Type.Number({ minimum: 0, description: '0 before the first answer.' }),
  p99Ms: Type.Number({ minimum: 0 }),
});
export type ProcessMetrics = typeof ProcessMetrics.static;

/** Minutes that are looked back on. */
export const HISTORY_MINUTES = 60;

export const ProcessHistory = Type.Array(
  Closed({
    at: Instant,
    requests: Count,
    p50Ms: Nullable(Type.Number({ minimum: 0 })),
    p99Ms: Nullable(Type.Number({ minimum: 0 })),
    lagMs: Nullable(Type.Number({ minimum: 0 })),
  }),
  {
    maxItems: HISTORY_MINUTES,
    description:
      'Of the answering process: its last hour, one entry a minute, oldest first. `requests`: answered in that minute; `lagMs`: how far its read models were behind the log at most. Null where nothing was measured.',
  },
);
export type ProcessHistory = typeof ProcessHistory.static;

/** Answers whose durations are kept: the last of all, and of each minute. */
const KEPT = 1024;
const KEPT_OF_MINUTE = 256;
const MINUTE_MS = 60_000;

export function processMetrics(clock: Clock) {
  const started = clock.monotonic();
  const all = durationRing(KEPT);
  const minutes = new Map<number, ReturnType<typeof durationRing>>();
  let requests = 0;
  let inFlight = 0;
  const minuteNow = () => Math.floor(clock.now() / MINUTE_MS);
  const ofMinute = (minute: number) => {
    const known = minutes.get(minute);
    if (known !== undefined) return known;
    const made = durationRing(KEPT_OF_MINUTE);
    minutes.set(minute, made);
    // The oldest entry goes, whatever the wall clock made of its minute.
    for (const oldest of minutes.keys()) if (minutes.size > HISTORY_MINUTES) minutes.delete(oldest);
    return made;
  };
  return {
    /** Call what it returns once the answer is ready. */
    begin(): () => void {
      const begun = clock.monotonic();
      requests += 1;
      inFlight += 1;
      return () => {
        const took = clock.monotonic() - begun;
        inFlight -= 1;
        all.add(took);
        ofMinute(minuteNow()).add(took);
      };
    },
    read(): ProcessMetrics {
      const [p50Ms = 0, p99Ms = 0] = all.percentiles() ?? [];
      return { uptimeMs: Math.floor(clock.monotonic() - started), requests, inFlight, p50Ms, p99Ms };
    },
    /** `lag`: by minute, as the read models' follower knows it. */
    history(lag: readonly LagSample[]): ProcessHistory {
      const now = minuteNow();
      const lags = new Map(lag.map(({ minute, lagMs }) => [minute, lagMs]));
      const known = [...new Set([...minutes.keys(), ...lags.keys()])]
        .filter((minute) => minute > now - HISTORY_MINUTES && minute <= now)
        .sort((a, b) => a - b);
      return known.map((minute) => {
        const ring = minutes.get(minute);
        const [p50Ms = null, p99Ms = null] = ring?.percentiles() ?? [];
        const at = new Date(minute * MINUTE_MS).toISOString();
        return { at, requests: ring?.count() ?? 0, p50Ms, p99Ms, lagMs: lags.get(minute) ?? null };
      });
    },
  };
}

/** The last `kept` durations, and how many there were. */
function durationRing(kept: number) {
  const durations: number[] = [];
  let count = 0;
  return {
    add(durationMs: number) {
      durations[count++ % kept] = durationMs;
    },
    count: () => count,
    /** p50 and p99; null before the first. */
    percentiles(): readonly [number, number] | null {
      const sorted = durations.toSorted((a, b) => a - b);
      const at = (share: number) =>
        sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0;
      return sorted.length === 0 ? null : [at(0.5), at(0.99)];
    },
  };
}

export type ProcessMeter = ReturnType<typeof processMetrics>;
