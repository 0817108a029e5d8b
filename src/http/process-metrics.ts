// How this process answers: a few counters and the durations of its last answers. Gone with the process.
import { Type } from '@sinclair/typebox';
import { Closed, Count } from '#src/domain/schema-parts.ts';
import type { Clock } from '#src/ports/clock.ts';

export const ProcessMetrics = Closed({
  uptimeMs: Count,
  requests: Count,
  inFlight: Count,
  p50Ms: Type.Number({ minimum: 0, description: '0 before the first answer.' }),
  p99Ms: Type.Number({ minimum: 0 }),
});
export type ProcessMetrics = typeof ProcessMetrics.static;

/** Answers whose durations are kept. */
const KEPT = 1024;

export function processMetrics(clock: Clock) {
  const started = clock.monotonic();
  const durations: number[] = [];
  let answered = 0;
  let requests = 0;
  let inFlight = 0;
  return {
    /** Call what it returns once the answer is ready. */
    begin(): () => void {
      const begun = clock.monotonic();
      requests += 1;
      inFlight += 1;
      return () => {
        inFlight -= 1;
        durations[answered++ % KEPT] = clock.monotonic() - begun;
      };
    },
    read(): ProcessMetrics {
      const sorted = durations.toSorted((a, b) => a - b);
      const at = (share: number) =>
        sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0;
      const uptimeMs = Math.floor(clock.monotonic() - started);
      return { uptimeMs, requests, inFlight, p50Ms: at(0.5), p99Ms: at(0.99) };
    },
  };
}

export type ProcessMeter = ReturnType<typeof processMetrics>;
