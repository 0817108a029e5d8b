// Admission: how many executions run at once, in all and per payer, and how many payments are verified at once.
// Refused at once rather than queued without bound.
import { LIMITS } from '#src/domain/limits.ts';
import { type Refused, refused } from '#src/domain/refusal.ts';

export type Slots = {
  /** A slot to be given back, or the refusal. `perPayer` null: no limit of its own. */
  take(payer: string, perPayer: number | null): Slot | Refused<'too_many_in_flight'>;
  /** The same for one payment being verified. */
  takeVerify(): Slot | Refused<'too_many_in_flight'>;
  inFlight(): number;
};

/** Gives the slot back; once is enough. */
export type Slot = () => void;

export function inFlightSlots(max: number): Slots {
  const byPayer = new Map<string, number>();
  let all = 0;
  let verifies = 0;
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
    takeVerify() {
      if (verifies >= LIMITS.verifiesInFlight.max) return tooManyInFlight();
      verifies += 1;
      return once(() => {
        verifies -= 1;
      });
    },
    inFlight: () => all,
  };
}

export const tooManyInFlight = () =>
  refused('too_many_in_flight', 'Too many calls are in flight: try again shortly.', { retryAfterSeconds: 1 });

function once(giveBack: () => void): Slot {
  let held = true;
  return () => {
    if (!held) return;
    held = false;
    giveBack();
  };
}
