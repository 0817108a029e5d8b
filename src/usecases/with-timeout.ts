// Work with the log before anything was sent: known while a caller is patient, or the caller is told and it ends.
import { Fault } from '#src/domain/refusal.ts';
import type { Clock } from '#src/ports/clock.ts';
import { EventLogUnavailable } from '#src/ports/event-log.ts';
import { startPatience } from '#src/usecases/execution/response-deadline.ts';

/**
 * For work whose fate may stay unknown: unlike an execution's appends it is not gone on with behind the answer, so that
 * nothing gathers while the log is away. `work` gets a clock whose sleeps end, by throwing, with the patience.
 * Throws `Fault` with `message` where the log is unavailable.
 */
export async function withinPatience<T>(
  clock: Clock,
  message: string,
  work: (clock: Clock) => Promise<T>,
): Promise<T> {
  const patience = startPatience(clock);
  const ending = new AbortController();
  const impatient: Clock = {
    ...clock,
    async sleep(ms) {
      await clock.sleep(ms, ending.signal);
      if (ending.signal.aborted) throw new EventLogUnavailable();
    },
  };
  patience.begin();
  try {
    return await Promise.race([work(impatient), patience.over]);
  } catch (cause) {
    if (!(cause instanceof EventLogUnavailable)) throw cause;
    throw new Fault('event_log_unavailable', message, { cause, retryAfterSeconds: 5 });
  } finally {
    ending.abort();
    patience.end();
  }
}
