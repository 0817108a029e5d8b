// Concurrency limits: executions in flight, and one call at a time for one idempotency key. All
// of it is this process's own; what the event log contains always takes precedence.
import { type Refused, tooManyInFlight } from '#src/domain/refusal.ts';
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

// ── one call at a time for one idempotency key ──────────────────────────────────────────────────────────

/**
 * Calls with one name take turns from their look-up to their claim, so that of many parallel calls with one idempotency
 * key only one is verified and takes a unit of the quota. null: the turn did not come within 2 s.
 */
export type Turns = (name: string) => Promise<Release | null>;

const TURN_WAIT_MS = 2000;

type Waiting = { readonly ended: Cancel; turn: Release | null };

export function claimTurns(clock: Pick<Clock, 'sleep'>): Turns {
  /** Of each name whose turn is taken: who waits for it, in order. Who gives up leaves nothing on the turn before it. */
  const queues = new Map<string, Waiting[]>();
  const turnOf = (name: string): Release =>
    once(() => {
      const next = queues.get(name)?.shift();
      if (next === undefined) {
        queues.delete(name);
        return;
      }
      next.turn = turnOf(name);
      next.ended.abort();
    });
  return async (name) => {
    const queue = queues.get(name);
    if (queue === undefined) {
      queues.set(name, []);
      return turnOf(name);
    }
    const waiting: Waiting = { ended: new Cancel(), turn: null };
    queue.push(waiting);
    await clock.sleep(TURN_WAIT_MS, waiting.ended);
    if (waiting.turn === null) queue.splice(queue.indexOf(waiting), 1);
    return waiting.turn;
  };
}
