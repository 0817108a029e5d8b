// A payment header can be rebuilt from what stands on chain: it must not tell its holder, guess by guess, what request
// it paid for. This counts wrong guesses; what is a guess, and of which payments, its caller decides.
import { LIMITS, TIMES } from '#src/domain/limits.ts';
import type { Clock } from '#src/ports/clock.ts';

export type MismatchGuard = {
  /** One more request that is not the one which this payment was made for. */
  count(stream: string): void;
  /** Too many of them came within memory: for an hour nobody's request is to be compared. */
  isClosed(stream: string): boolean;
};

type Guesses = { readonly count: number; readonly closedAt: number | null };

/** `limit`: payments remembered; those without a wrong guess for the longest time are forgotten beyond it. */
export function mismatchGuard(clock: Pick<Clock, 'monotonic'>, limit = 10_000): MismatchGuard {
  const guesses = new Map<string, Guesses>();
  const isClosed = (stream: string) => {
    const closedAt = guesses.get(stream)?.closedAt ?? null;
    if (closedAt === null) return false;
    if (clock.monotonic() - closedAt < TIMES.mismatchBlockMs) return true;
    guesses.delete(stream);
    return false;
  };
  return {
    isClosed,
    count(stream) {
      if (isClosed(stream)) return;
      const count = (guesses.get(stream)?.count ?? 0) + 1;
      guesses.delete(stream);
      guesses.set(stream, {
        count,
        closedAt: count < LIMITS.mismatchesPerPayment.max ? null : clock.monotonic(),
      });
      if (guesses.size > limit) for (const oldest of guesses.keys()) return void guesses.delete(oldest);
    },
  };
}
