// How fast the event log grows, judged by its own events: nothing else of the past is known after a restart.

export type StoredEvents = {
  /** Of all events with their indexes. */
  readonly bytes: number;
  readonly events: number;
  /** When the first of them was stored: Unix ms. */
  readonly firstAt: number;
  /** How many were stored since the instant that was asked for. */
  readonly recentEvents: number;
};

const DAY_MS = 86_400_000;
/** A week has its working days and its nights. */
export const GROWTH_WINDOW_MS = 7 * DAY_MS;

/**
 * Bytes a day since `GROWTH_WINDOW_MS` ago, or since the first event if that is later. null: no day has passed since the
 * first one, and an hour says little of the days to come. `recentEvents`: of that window.
 */
export function bytesPerDay(
  { bytes, events, firstAt, recentEvents }: StoredEvents,
  nowMs: number,
): number | null {
  const days = Math.min(GROWTH_WINDOW_MS, nowMs - firstAt) / DAY_MS;
  return days < 1 ? null : ((bytes / events) * recentEvents) / days;
}
