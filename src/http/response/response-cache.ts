// Caches expensive public queries until the projection advances, for at most 500 ms.
import type { ProgressOf } from '#src/http/deps.ts';
import type { Clock } from '#src/ports/clock.ts';

/** Beyond the rows an answer also rests on what time it is, and on rows that others wrote: not for longer than this. */
const KEPT_MS = 500;
/** Questions that differ, remembered at once. */
const QUESTIONS = 64;

export type Moment = ProgressOf<'position'> & {
  readonly clock: Pick<Clock, 'monotonic'>;
};

/** Asked again after rows have changed it works again; what failed is not kept. */
export function ofTheMoment<Q extends string | number, A>(
  { progress, clock }: Moment,
  work: (question: Q) => Promise<A>,
): (question: Q) => Promise<A> {
  const kept = new Map<Q, { readonly position: string | null; readonly until: number; answer: Promise<A> }>();
  return (question) => {
    const [position, now] = [progress.position(), clock.monotonic()];
    const held = kept.get(question);
    if (held !== undefined && held.position === position && now < held.until) return held.answer;
    const answer = work(question);
    const entry = { position, until: now + KEPT_MS, answer };
    kept.delete(question);
    for (const [oldest] of kept) if (kept.size >= QUESTIONS) kept.delete(oldest);
    kept.set(question, entry);
    answer.catch(() => {
      if (kept.get(question) === entry) kept.delete(question);
    });
    return answer;
  };
}
