// What read models that come after the log mean for an answer: a miss is a miss only once they have seen all that the
// log held at the request, and what was just written is waited for so that its links work at once.
import { LIMITS } from '#src/domain/limits.ts';
import { Fault, isRefused, type Refused } from '#src/domain/refusal.ts';
import type { ProgressOf } from '#src/http/deps.ts';
import type { Logger } from '#src/ports/logger.ts';

/** `find` answers null, or a refusal that a later event may turn round (`receipt_not_ready`). */
export async function findForSure<T extends object, R extends Refused>(
  progress: ProgressOf<'reachedHead'>['progress'],
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

/** `position`: of what was written. The result stands whether or not the read models come after in time. */
export async function linksWork(
  { progress, logger }: ProgressOf<'caughtUp'> & { readonly logger: Logger },
  { position }: { readonly position: string },
): Promise<void> {
  try {
    await progress.caughtUp(position, LIMITS.answerWaitMs.max);
  } catch (cause) {
    logger.warn('read models not caught up at the answer', { cause });
  }
}
