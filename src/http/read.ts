// A miss is a miss only when the read models have seen all that the log held at the request: else wait, look once more.
import { Fault, isRefused, type Refused } from '#src/domain/refusal.ts';
import type { Progress } from './deps.ts';

/** `find` answers null, or a refusal that a later event may turn round (`receipt_not_ready`). */
export async function findForSure<T extends object, R extends Refused>(
  progress: Pick<Progress, 'reachedHead'>,
  find: () => Promise<T | R | null>,
  missing: R,
): Promise<T | R> {
  const first = await find();
  if (first !== null && !isRefused(first)) return first;
  const caughtUp = await progress.reachedHead();
  const second = await find();
  if (second !== null && !isRefused(second)) return second;
  if (!caughtUp) {
    throw new Fault('read_models_unavailable', 'The records are not up to date: try again shortly.', {
      retryAfterSeconds: 1,
    });
  }
  return second ?? missing;
}
