// Whether the rows have caught up with the log, as it was when this process first looked, and what the operator is told
// of a long way there. Until then counts and lists are of a part of the log only.
import type { Clock } from '#src/ports/clock.ts';
import type { Logger } from '#src/ports/logger.ts';

export type CatchUp = {
  /** The rows stand at `from` and the log's head at `head`. Rows that were taken back have to catch up anew. */
  begin(from: string | null, head: string | null): void;
  /** The rows are not of this log: they have to catch up anew, from nothing. */
  lost(): void;
  /** Rows up to `position` can be read; `events`: how many of them were projected here since the last call. */
  moved(position: string, events: number): void;
  /** Whether the rows have caught up; waits for it up to `timeoutMs`. Never throws. */
  ready(timeoutMs: number): Promise<boolean>;
};

/** A way of more events than this is worth a line in the log. */
const LONG_WAY = 2000;
const TELL_EVERY_MS = 5000;

export function makeCatchUp({ clock, logger }: { clock: Clock; logger: Logger }): CatchUp {
  let known: string | null = null;
  let ready = Promise.withResolvers<void>();
  let isReady = false;
  let way: Way | null = null;
  return {
    begin(from, head) {
      if (isBefore(from, known)) unready();
      known = from;
      way = head === null ? null : { to: head, since: clock.monotonic(), events: 0, toldAt: null };
      arrive();
    },
    lost() {
      unready();
      known = null;
      way = null;
    },
    moved(position, events) {
      known = position;
      if (way !== null) {
        way.events += events;
        tell(way);
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
    if (way !== null && isBefore(known, way.to)) return;
    if (way !== null && way.toldAt !== null) {
      logger.info('the read models have caught up with the event log', figures(way));
    }
    way = null;
    isReady = true;
    ready.resolve();
  }

  function tell(under: Way): void {
    const now = clock.monotonic();
    if (under.toldAt === null) {
      if (under.events < LONG_WAY) return;
      logger.info('replaying the event log into the read models');
    } else {
      if (now - under.toldAt < TELL_EVERY_MS) return;
      logger.info('the read models are still being replayed', figures(under));
    }
    under.toldAt = now;
  }

  function figures({ events, since }: Way): { events: number; seconds: number; eventsPerSecond: number } {
    const seconds = Math.max(0.001, (clock.monotonic() - since) / 1000);
    return { events, seconds: Math.round(seconds), eventsPerSecond: Math.round(events / seconds) };
  }
}

type Way = { readonly to: string; readonly since: number; events: number; toldAt: number | null };

/** Positions compare as text; null stands before the first. */
const isBefore = (a: string | null, b: string | null): boolean => b !== null && (a === null || a < b);
