// Concurrency limits: executions in flight, and one call at a time for one idempotency key. All
// of it is this process's own; what the event log contains always takes precedence.
import { type Refused, refused } from '#src/domain/refusal.ts';
import { Cancel } from '#src/lib/time.ts';
import type { Clock } from '#src/ports/clock.ts';

/** Gives back what was taken; calling it again does nothing. */
export type Release = () => void;

export function once(giveBack: () => void): Release {
  let held = true;
  return () => {
    if (!held) return;
    held = false;
    giveBack();
  };
}

export type Slots = {
  /** A slot for one execution, or the refusal. `perPayer` null: the payer has no limit of its own. */
  take(payer: string, perPayer: number | null): Release | Refused<'too_many_in_flight'>;
  inFlight(): number;
};

/** Refuses at once instead of queueing without bound. `max`: executions over all payers. */
export function inFlightSlots(max: number): Slots {
  const byPayer = new Map<string, number>();
  let all = 0;
  return {
    take(payer, perPayer) {
      const own = byPayer.get(payer) ?? 0;
      if (all >= max || (perPayer !== null && own >= perPayer)) return tooManyInFlight();
      all += 1;
      byPayer.set(payer, own + 1);
      return once(() => {
        all -= 1;
        const left = (byPayer.get(payer) ?? 1) - 1;
        if (left > 0) byPayer.set(payer, left);
        else byPayer.delete(payer);
      });
    },
    inFlight: () => all,
  };
}

export const tooManyInFlight = () =>
  refused('too_many_in_flight', 'Too many calls are in flight: try again shortly.', { retryAfterSeconds: 1 });

// ── one call at a time for one idempotency key ──────────────────────────────────────────────────────────

/**
 * Calls with one name take turns from their look-up to their claim, so that of many parallel calls with one idempotency
 * key only one is verified and takes a unit of the quota. null: the turn did not come within 2 s.
 */
export type Turns = (name: string) => Promise<Release | null>;

const TURN_WAIT_MS = 2000;

export function claimTurns(clock: Pick<Clock, 'sleep'>): Turns {
  const last = new Map<string, Promise<void>>();
  return async (name) => {
    const before = last.get(name);
    const { promise, resolve } = Promise.withResolvers<void>();
    const turn = Promise.all([before, promise]).then(() => {
      if (last.get(name) === turn) last.delete(name);
    });
    last.set(name, turn);
    if (before === undefined) return resolve;
    const timer = new Cancel();
    const late = clock.sleep(TURN_WAIT_MS, timer).then(() => 'late');
    const isLate = (await Promise.race([before, late])) === 'late';
    timer.abort();
    if (!isLate) return resolve;
    resolve();
    return null;
  };
}
