// Admission: how many executions run at once, in all and per payer. Refused at once rather than queued without bound.
import { type Refused, refused } from '../domain/refusal.ts';

export type Slots = {
  /** A slot to be given back, or the refusal. `perPayer` null: no limit of its own. */
  take(payer: string, perPayer: number | null): (() => void) | Refused<'too_many_in_flight'>;
  inFlight(): number;
};

export function inFlightSlots(max: number): Slots {
  const byPayer = new Map<string, number>();
  let all = 0;
  return {
    take(payer, perPayer) {
      const own = byPayer.get(payer) ?? 0;
      if (all >= max || (perPayer !== null && own >= perPayer)) {
        return refused('too_many_in_flight', 'Too many calls are in flight: try again shortly.', {
          retryAfterSeconds: 1,
        });
      }
      all += 1;
      byPayer.set(payer, own + 1);
      let held = true;
      return () => {
        if (!held) return;
        held = false;
        all -= 1;
        const left = (byPayer.get(payer) ?? 1) - 1;
        if (left > 0) byPayer.set(payer, left);
        else byPayer.delete(payer);
      };
    },
    inFlight: () => all,
  };
}
