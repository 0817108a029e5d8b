// Into which buckets a window of monitoring is cut, and how they look on the wire.
import { Type } from '@sinclair/typebox';
import type { ExecutionSeries } from '#projections/monitoring/query.ts';
import { Closed, Count, Instant, Nullable } from '#src/domain/schema-parts.ts';

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;

const SIZES = [
  ...[1, 5, 15, 30].map((minutes) => minutes * MINUTE_MS),
  ...[1, 2, 6, 8].map((hours) => hours * HOUR_MS),
];
/** Of whole buckets: one more begins before the window. */
const BUCKETS_MAX = 99;

/** The finest bucket of which a window has no more than can be drawn. */
export function bucketMs(windowMs: number): number {
  return SIZES.find((size) => windowMs <= size * BUCKETS_MAX) ?? 8 * HOUR_MS;
}

/**
 * The first minute of each bucket, `YYYY-MM-DDTHH:MM`, from `since` (a minute) to `nowMs`. Buckets begin at multiples of
 * their size since the Unix epoch: the first one often before the window, of which it holds only its part.
 */
export function bucketStarts(since: string, nowMs: number, sizeMs: number): readonly string[] {
  const first = Math.floor(Date.parse(`${since}:00.000Z`) / sizeMs);
  const last = Math.max(first, Math.floor(nowMs / sizeMs));
  return Array.from({ length: last - first + 1 }, (_, at) =>
    new Date((first + at) * sizeMs).toISOString().slice(0, 16),
  );
}

const Duration = Type.Number({ minimum: 0 });

export const Series = Type.Array(
  Closed({
    at: Instant,
    succeeded: Count,
    failed: Count,
    durationMs: Nullable(Closed({ p50: Duration, p95: Duration })),
  }),
  {
    maxItems: BUCKETS_MAX + 1,
    description:
      'Finished executions of the window, oldest first: evenly spaced, each entry from its `at` to the next one’s. The first begins at or before the window and holds only what is in it. Durations are estimates from counted classes, 28 % off at most (below 25 ms: 25 ms); null where none is known.',
  },
);
export type Series = typeof Series.static;

export const Durations = Nullable(
  Closed(
    { p50Ms: Duration, p95Ms: Duration },
    'Of all executions of the window that ended by themselves: from the first attempt to the receipt.',
  ),
);
export type Durations = typeof Durations.static;

export function seriesOf({ buckets, durationMs }: ExecutionSeries): { series: Series; durations: Durations } {
  return {
    series: buckets.map(({ start, ...counted }) => ({ at: `${start}:00.000Z`, ...counted })),
    durations: durationMs && { p50Ms: durationMs.p50, p95Ms: durationMs.p95 },
  };
}
