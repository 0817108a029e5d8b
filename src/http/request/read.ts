// The miss rule: a row that is missing or not final is answered only once the read models have reached the event log's
// head as read at the request.
import { Fault, isRefused, type Refused } from '#src/domain/refusal.ts';
import type { ProgressOf } from '#src/http/deps.ts';

/**
 * `find` returns null, or a refusal that a later event may reverse (`receipt_not_ready`). `isFinal`: whether no later event
 * changes what was found; otherwise it is read again at the head. Waits at most 1 s; throws `Fault` if the head is not
 * reached.
 */
export async function findForSure<T extends object, R extends Refused>(
  progress: ProgressOf<'reachedHead'>['progress'],
  find: () => Promise<T | R | null>,
  missing: R,
  isFinal: (found: T) => boolean = () => true,
): Promise<T | R> {
  const answers = (found: T | R | null): found is T => found !== null && !isRefused(found);
  const first = await find();
  if (answers(first) && isFinal(first)) return first;
  const caughtUp = await progress.reachedHead();
  const second = await find();
  if (answers(second) && (caughtUp || isFinal(second))) return second;
  // What was there a moment ago cannot be missing: the rows are being replaced.
  if (!caughtUp || (second === null && first !== null)) {
    throw new Fault('read_models_unavailable', 'The records are not up to date: try again shortly.', {
      retryAfterSeconds: 1,
    });
  }
  return second ?? missing;
}
