// Which runs may start now: as many as there are places, and while calls are in flight one after another.
import { LIMITS } from '#src/domain/limits.ts';
import { isRefused } from '#src/domain/refusal.ts';
import type { DefinedSchedule, Ticket } from '#src/domain/schedule/state.ts';
import { inFlightSlots, type Release, type Slots } from '#src/usecases/execution/process-limits.ts';
import type { ScheduleDeps } from './quote.ts';

/**
 * While calls are in flight, runs start at least so long after one another: what they cost the process is left to the calls.
 * A run that is late by as much as `PACE_HALVED_MS` waits half as long, so that 600 runs have started within a minute.
 */
const PACE_MS = 150;
const PACE_HALVED_MS = 20_000;

export type RunPlacesDeps = Pick<ScheduleDeps, 'clock' | 'slots'> & {
  /** Runs in progress in this process at most: a share of its calls in flight. */
  readonly runsAtOnce: number;
};

export type RunPlaces = {
  /** Whether runs start one after another: calls are in flight. */
  isPaced(): boolean;
  /** Whether no run may start now. */
  isFull(): boolean;
  /**
   * A place for one run; null: there is none. One buyer has as many runs in progress as calls in flight: those of others
   * are begun meanwhile.
   */
  take(schedule: DefinedSchedule, ticket: Ticket): Release | null;
};

export function runPlaces(deps: RunPlacesDeps): RunPlaces {
  const { clock, runsAtOnce } = deps;
  /** Of runs in progress, and those that are about to start, by the buyer of their schedule. */
  const places: Slots = inFlightSlots(runsAtOnce);
  /** When the next run may start while calls are in flight, monotonic ms. */
  let next = Number.NEGATIVE_INFINITY;
  const isPaced = () => deps.slots.inFlight('calls') > 0;
  const isFull = () => places.inFlight() >= runsAtOnce || (isPaced() && clock.monotonic() < next);
  return {
    isPaced,
    isFull,
    take({ holder }, { dueAt }) {
      if (isFull()) return null;
      const place = places.take(holder ?? '', LIMITS.inFlightPerPayer.max);
      if (isRefused(place)) return null;
      const lateMs = Math.max(0, clock.now() - Date.parse(dueAt));
      next = clock.monotonic() + PACE_MS / (1 + lateMs / PACE_HALVED_MS);
      return place;
    },
  };
}
