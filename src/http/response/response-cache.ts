// Figures: expensive public queries. Each is computed at most once per projection step, one question at a time, and for at
// most a tenth of the time, however many ask and whatever they ask.
import type { ProgressOf } from '#src/http/deps.ts';
import type { Clock } from '#src/ports/clock.ts';

/** Beyond the rows an answer also rests on what time it is, and on rows that others wrote: not for longer than this. */
const KEPT_MS = 500;
/** No computation begins until so many times the length of the one before has passed, at most `KEPT_MS`. */
const REST = 9;
/** Questions that differ, remembered at once. */
const QUESTIONS = 64;

export type Moment = ProgressOf<'position'> & {
  readonly clock: Pick<Clock, 'monotonic' | 'sleep'>;
};

type Kept<A> = { readonly position: string | null; readonly until: number; readonly answer: Promise<A> };

/**
 * The answer is computed after the call, or is kept and of rows that have not changed since. If a computation fails, so
 * does every call that waits behind it: none waits for several time limits of a store.
 */
export function figure<Q extends string | number, A>(
  { progress, clock }: Moment,
  compute: (question: Q) => Promise<A>,
): (question: Q) => Promise<A> {
  const kept = new Map<Q, Kept<A>>();
  const waiting = new Map<Q, ReturnType<typeof Promise.withResolvers<A>>>();
  let computing = false;

  async function computeWaiting(): Promise<void> {
    computing = true;
    // Also those that are added meanwhile.
    for (const [question, { resolve, reject }] of waiting) {
      waiting.delete(question);
      const begun = clock.monotonic();
      try {
        resolve(await keep(question, begun));
      } catch (error) {
        kept.delete(question);
        reject(error);
        for (const behind of waiting.values()) behind.reject(error);
        waiting.clear();
      }
      const rest = Math.min(KEPT_MS, REST * (clock.monotonic() - begun));
      if (rest > 0) await clock.sleep(rest);
    }
    computing = false;
  }

  function keep(question: Q, now: number): Promise<A> {
    const answer = compute(question);
    kept.delete(question);
    for (const [oldest] of kept) if (kept.size >= QUESTIONS) kept.delete(oldest);
    kept.set(question, { position: progress.position(), until: now + KEPT_MS, answer });
    return answer;
  }

  return (question) => {
    const held = kept.get(question);
    if (held !== undefined && held.position === progress.position() && clock.monotonic() < held.until)
      return held.answer;
    const asked = waiting.get(question) ?? Promise.withResolvers<A>();
    waiting.set(question, asked);
    if (!computing) void computeWaiting();
    return asked.promise;
  };
}
