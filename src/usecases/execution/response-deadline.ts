// How long a caller waits for an answer while the work behind it goes on, whatever happens to the connection.
import { TIMES } from '#src/domain/limits.ts';
import { Fault } from '#src/domain/refusal.ts';
import type { Clock } from '#src/ports/clock.ts';
import { EventLogUnavailable } from '#src/ports/event-log.ts';
import type { Call } from './execution-call.ts';

/** The longest that a caller waits for an append before anything was sent or settled. */
const APPEND_PATIENCE_MS = 2000;

/** One caller's patience. Work goes on behind an answer that it cut short, until its fate is known. */
export type Patience = {
  /** Rejects, once, when the caller's patience is over. */
  readonly over: Promise<never>;
  /**
   * Waits for an append before anything was sent or settled. Where that takes too long the caller is answered; when it
   * is known at last, the call goes no further: what was stored waits for its resume.
   */
  readonly forAppend: <T>(append: Promise<T>) => Promise<T>;
  /** The same wait for a step that goes on when it is known. Call what it answers when it is. */
  readonly begin: () => () => void;
  readonly end: () => void;
};

export function startPatience(clock: Clock): Patience {
  const timers = new Set<AbortController>();
  let lose: (cause: Error) => void = () => undefined;
  let lost = false;
  const over = new Promise<never>((_, reject) => {
    lose = (cause) => {
      lost = true;
      reject(cause);
    };
  });
  over.catch(() => undefined);
  const loseAfter = (ms: number, why: string) => {
    const timer = new AbortController();
    timers.add(timer);
    void clock.sleep(ms, timer.signal).then(() => {
      timers.delete(timer);
      if (!timer.signal.aborted) lose(new EventLogUnavailable({ cause: new Error(why) }));
    });
    return () => timer.abort();
  };
  const begin = () => loseAfter(APPEND_PATIENCE_MS, 'an append takes too long');
  loseAfter(TIMES.responseDeadlineMs, 'the answer budget is over');
  return {
    over,
    begin,
    async forAppend(append) {
      const known = begin();
      try {
        const stored = await append;
        if (lost) throw new EventLogUnavailable({ cause: new Error('the caller was answered before') });
        return stored;
      } finally {
        known();
      }
    },
    end() {
      for (const timer of timers) timer.abort();
    },
  };
}

export function logUnavailable({ startedJobId, acknowledged, lookup }: Call, cause: unknown): Fault {
  const again = lookup.paymentStream === null ? '' : ' Repeat with the same payment header.';
  const state =
    startedJobId === null
      ? 'nothing was sent.'
      : acknowledged
        ? 'the result will be found at the job.'
        : 'nothing was sent so far. Should the job still start, its result will be found there.';
  return new Fault('event_log_unavailable', `The event log is unavailable: ${state}${again}`, {
    cause,
    retryAfterSeconds: 5,
    ...(startedJobId === null ? {} : { details: { jobId: startedJobId } }),
  });
}
