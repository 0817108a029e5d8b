// Reports whether the rows have caught up with the head that the log had when this process first read it, and logs the
// progress of a long replay. Until the rows have caught up, counts and lists cover a part of the log only.
import type { Clock } from '#src/ports/clock.ts';
import type { Logger } from '#src/ports/logger.ts';

export type CatchUp = {
  /** The projection position is `from` and the log's head is `head`. Rows that were rolled back have to catch up again. */
  begin(from: string | null, head: string | null): void;
  /** The rows are not of this log: they have to catch up from the first event. */
  lost(): void;
  /** Rows up to `position` can be read; `events`: how many of them were projected here since the last call. */
  moved(position: string, events: number): void;
  /** Whether the rows have caught up; waits for it up to `timeoutMs`. Never throws. */
  ready(timeoutMs: number): Promise<boolean>;
};

/** A replay of more events than this is logged. */
const LONG_REPLAY = 2000;
const LOG_EVERY_MS = 5000;

export function makeCatchUp({ clock, logger }: { clock: Clock; logger: Logger }): CatchUp {
  let known: string | null = null;
  let ready = Promise.withResolvers<void>();
  let isReady = false;
  let replay: Replay | null = null;
  return {
    begin(from, head) {
      if (isBefore(from, known)) unready();
      known = from;
      replay = head === null ? null : { to: head, since: clock.monotonic(), events: 0, loggedAt: null };
      arrive();
    },
    lost() {
      unready();
      known = null;
      replay = null;
    },
    moved(position, events) {
      known = position;
      if (replay !== null) {
        replay.events += events;
        logProgress(replay);
      }
      arrive();
    },
    async ready(timeoutMs) {
      if (isReady) return true;
      const timer = new AbortController();
      await Promise.race([ready.promise, clock.sleep(timeoutMs, timer.signal)]);
      timer.abort();
      return isReady;
    },
  };

  function unready(): void {
    if (!isReady) return;
    isReady = false;
    ready = Promise.withResolvers();
  }

  function arrive(): void {
    if (replay !== null && isBefore(known, replay.to)) return;
    if (replay !== null && replay.loggedAt !== null) {
      logger.info('the read models have caught up with the event log', figures(replay));
    }
    replay = null;
    isReady = true;
    ready.resolve();
  }

  function logProgress(current: Replay): void {
    const now = clock.monotonic();
    if (current.loggedAt === null) {
      if (current.events < LONG_REPLAY) return;
      logger.info('replaying the event log into the read models');
    } else {
      if (now - current.loggedAt < LOG_EVERY_MS) return;
      logger.info('the read models are still being replayed', figures(current));
    }
    current.loggedAt = now;
  }

  function figures({ events, since }: Replay): { events: number; seconds: number; eventsPerSecond: number } {
    const seconds = Math.max(0.001, (clock.monotonic() - since) / 1000);
    return { events, seconds: Math.round(seconds), eventsPerSecond: Math.round(events / seconds) };
  }
}

type Replay = { readonly to: string; readonly since: number; events: number; loggedAt: number | null };

/** Positions compare as text; null is before the first. */
const isBefore = (a: string | null, b: string | null): boolean => b !== null && (a === null || a < b);
