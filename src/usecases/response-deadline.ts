// The longest that a caller waits for its answer. Work that must not be abandoned continues behind the answer.
import { TIMES } from '#src/domain/limits.ts';
import { anyOf, Cancel } from '#src/lib/time.ts';
import type { Clock } from '#src/ports/clock.ts';
import { EventLogUnavailable } from '#src/ports/event-log.ts';
import type { Logger } from '#src/ports/logger.ts';
import { isOutage, logFault } from '#src/ports/outage.ts';

/** The longest that a caller waits for one append before anything was sent or settled. */
const APPEND_LIMIT_MS = 2000;

export type ResponseDeadline = ReturnType<typeof startResponseDeadline>;

/** The deadline passes after TIMES.responseDeadlineMs, or when one append takes longer than 2 s. */
export function startResponseDeadline(clock: Clock) {
  const timers = new Set<Cancel>();
  const outcome = Promise.withResolvers<never>();
  outcome.promise.catch(() => undefined);
  const end = clock.monotonic() + TIMES.responseDeadlineMs;
  const over = new Cancel();
  const passAfter = (ms: number, why: string) => {
    const timer = new Cancel();
    timers.add(timer);
    void clock.sleep(ms, timer).then(() => {
      timers.delete(timer);
      if (timer.aborted) return;
      over.abort();
      outcome.reject(new EventLogUnavailable({ cause: new Error(why) }));
    });
    return () => timer.abort();
  };
  const limitAppend = () => passAfter(APPEND_LIMIT_MS, 'an append takes too long');
  passAfter(TIMES.responseDeadlineMs, 'the response deadline has passed');
  return {
    /** Rejects with `EventLogUnavailable`, once, when the deadline has passed. */
    passed: outcome.promise,
    hasPassed: (): boolean => over.aborted,
    /** Whether the whole time is over: no append was too slow. */
    isOver: (): boolean => clock.monotonic() >= end,
    /** Aborts when it passes. */
    signal: over,
    /** ms until it passes; 0 if it has passed. */
    left: (): number => (over.aborted ? 0 : Math.max(0, end - clock.monotonic())),
    /** Starts the limit of an append for a step that continues whenever it is acknowledged. Returns what ends the limit. */
    limitAppend,
    /**
     * Waits for an append before anything was sent or settled. If it takes longer than 2 s the caller is answered; when
     * the append is acknowledged at last, this throws `EventLogUnavailable`: a repeat of the call continues from there.
     */
    async forAppend<T>(append: Promise<T>): Promise<T> {
      const acknowledged = limitAppend();
      try {
        const stored = await append;
        if (over.aborted)
          throw new EventLogUnavailable({ cause: new Error('the caller was answered before') });
        return stored;
      } finally {
        acknowledged();
      }
    },
    end(): void {
      for (const timer of timers) timer.abort();
    },
  };
}

/**
 * Runs `work`, which continues behind the answer once the deadline has passed. Throws `Fault` if the event log is
 * unavailable; `outcome`: what follows for the caller. A defect behind the answer is logged.
 */
export async function answerInTime<T>(
  { clock, logger }: { readonly clock: Clock; readonly logger: Logger },
  outcome: string,
  work: (deadline: ResponseDeadline) => Promise<T>,
): Promise<T> {
  const deadline = startResponseDeadline(clock);
  const working = work(deadline);
  working.catch((cause: unknown) => {
    if (deadline.hasPassed() && !isOutage(cause)) logger.bug('work failed behind its answer', { cause });
  });
  try {
    return await Promise.race([working, deadline.passed]);
  } catch (cause) {
    if (!(cause instanceof EventLogUnavailable)) throw cause;
    throw logFault(cause, outcome);
  } finally {
    deadline.end();
  }
}

/**
 * Runs `work` within the limit of one append. Unlike an execution's appends it does not continue behind the answer:
 * `work` gets a clock whose sleeps throw once the limit has passed. Throws `Fault` if the event log is unavailable; `outcome`:
 * what follows for the caller. A defect behind the answer is logged.
 */
export async function withinDeadline<T>(
  { clock, logger }: { readonly clock: Clock; readonly logger: Logger },
  outcome: string,
  work: (clock: Clock) => Promise<T>,
): Promise<T> {
  const ended = new Cancel();
  const limited: Clock = {
    now: () => clock.now(),
    monotonic: () => clock.monotonic(),
    async sleep(ms, signal) {
      const either = signal === undefined ? null : anyOf(ended, signal);
      await clock.sleep(ms, either?.signal ?? ended);
      either?.release();
      if (ended.aborted) throw new EventLogUnavailable();
    },
  };
  const limit = clock.sleep(APPEND_LIMIT_MS, ended).then(() => {
    throw new EventLogUnavailable({ cause: new Error('the event log takes too long') });
  });
  const working = work(limited);
  working.catch((cause: unknown) => {
    if (ended.aborted && !isOutage(cause)) logger.bug('work failed behind its answer', { cause });
  });
  try {
    return await Promise.race([working, limit]);
  } catch (cause) {
    if (!(cause instanceof EventLogUnavailable)) throw cause;
    throw logFault(cause, outcome);
  } finally {
    ended.abort();
  }
}
