// Reads the whole event log every hour, so that damage is found before a call needs the event: the event log records and logs
// what a scan finds.

import { unlessAborted } from '#src/lib/time.ts';
import type { Clock } from '#src/ports/clock.ts';
import type { AbortSignalLike } from '#src/ports/event-log.ts';
import type { ScannedLog } from '#src/ports/event-scan.ts';
import type { Logger } from '#src/ports/logger.ts';
import { repeated } from '#src/usecases/process/worker.ts';

export type ScrubDeps = {
  readonly log: Pick<ScannedLog, 'scan' | 'health'>;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Ends it. */
  readonly ending: AbortSignalLike;
  /** Nothing is read before it resolves. */
  readonly after?: Promise<void>;
  /** From the start of one pass to that of the next. */
  readonly everyMs?: number | undefined;
};

export type Scrub = {
  /** Resolves when `ending` has aborted and no scan is under way. */
  readonly ended: Promise<void>;
  /** When the last pass over all events ended, Unix ms; null: none has. */
  lastPass(): number | null;
};

const HOUR_MS = 3_600_000;
const RETRY_MS = 60_000;
/** One turn takes about half a millisecond of the thread. */
const TURN_EVENTS = 64;
/**
 * Times as long as a turn took: 5 % of one core, so that 10 million events take about half an hour; half of it while the log
 * accepts no events, because no call is executed then, and the end of a pass may end that.
 */
const REST = { besideCalls: 19, withoutCalls: 1 };

export function scrubLog({ log, clock, logger, ending, after, everyMs = HOUR_MS }: ScrubDeps): Scrub {
  let lastPass: number | null = null;

  /** false: ended before. */
  async function pass(): Promise<boolean> {
    const rest = (await log.health()).ok ? REST.besideCalls : REST.withoutCalls;
    for (let from: string | null = null; !ending.aborted; ) {
      const begun = clock.monotonic();
      const { next } = await log.scan({ after: from, max: TURN_EVENTS, index: true });
      if (next === null) return true;
      from = next;
      await clock.sleep(Math.max(1, rest * (clock.monotonic() - begun)), ending);
    }
    return false;
  }

  let begun = 0;
  const worker = repeated(
    { clock, logger, stopping: ending },
    {
      pauseMs: (completed) => (completed ? Math.max(0, everyMs - (clock.monotonic() - begun)) : RETRY_MS),
      async run() {
        begun = clock.monotonic();
        if (await pass()) lastPass = clock.now();
      },
      failed: { message: 'the event log could not be scrubbed' },
    },
  );
  const begins = after === undefined ? Promise.resolve() : unlessAborted(after, ending);
  return { ended: begins.then(() => worker.run()), lastPass: () => lastPass };
}
