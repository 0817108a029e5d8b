// Events that the log has delivered and no checkpoint has reached yet: a bounded queue that slows the log down.
import type { RecordedEvent } from '#src/domain/event-codec.ts';
import type { Clock } from '#src/ports/clock.ts';
import type { AbortSignalLike, EventLog } from '#src/ports/event-log.ts';
import type { Logger } from '#src/ports/logger.ts';

export type PendingEvents = {
  readonly size: number;
  /** true once the log's head, as it was at some time, has been delivered. */
  readonly complete: boolean;
  /** true while more events may wait in the log than stand here. */
  readonly full: boolean;
  /** Monotonic ms at which the oldest event here arrived; null where there is none. */
  oldestArrival(): number | null;
  /** The oldest events: `max`, and what follows them of the same append; they stay until they are dropped. */
  first(max: number): readonly RecordedEvent[];
  /** Forgets every event at or before `position`, and those that are yet to be delivered. */
  dropThrough(position: string): void;
  /** Resolves at the next event, at the first `caught_up`, or when `signal` aborts. */
  changed(): Promise<void>;
};

const RESUBSCRIBE_MS = 500;

/** More events than any append of ours has. */
const MAX_APPEND = 16;

type Item = { readonly event: RecordedEvent; readonly arrived: number };

/** A log does not say where an append ends; events of one follow each other, in its stream as in the log. */
function wholeAppends(items: readonly Item[], max: number): number {
  let end = Math.min(max, items.length);
  while (end < max + MAX_APPEND && isFollowedBy(items[end - 1]?.event, items[end]?.event)) end++;
  return end;
}

const isFollowedBy = (event: RecordedEvent | undefined, next: RecordedEvent | undefined): boolean =>
  event !== undefined && event.stream === next?.stream && event.revision + 1n === next.revision;

/** A completion and its receipt are one append: after the one the other is at hand at any moment. */
export const isMidAppend = (event: RecordedEvent | undefined): boolean => event?.type === 'JobCompleted';

export function pendingEvents(
  { log, clock, logger }: { log: Pick<EventLog, 'subscribeAll'>; clock: Clock; logger: Logger },
  { after, capacity, signal }: { after: string | null; capacity: number; signal: AbortSignalLike },
): PendingEvents {
  const items: Item[] = [];
  // A batch of all that fits never stops the log in the middle of an append.
  const limit = capacity + MAX_APPEND;
  const state = { complete: false, dropped: after ?? '', wake: () => {}, makeRoom: () => {} };
  signal.addEventListener('abort', () => {
    state.wake();
    state.makeRoom();
  });
  void pump();
  return {
    get size() {
      return items.length;
    },
    get complete() {
      return state.complete;
    },
    get full() {
      return items.length >= limit;
    },
    oldestArrival: () => items[0]?.arrived ?? null,
    first: (max) => items.slice(0, wholeAppends(items, max)).map(({ event }) => event),
    dropThrough(position) {
      if (position > state.dropped) state.dropped = position;
      const kept = items.findIndex(({ event }) => event.position > position);
      items.splice(0, kept === -1 ? items.length : kept);
      state.makeRoom();
    },
    changed: () =>
      new Promise((resolve) => {
        if (signal.aborted) resolve();
        else state.wake = resolve;
      }),
  };

  /** The port resumes by itself; should its iteration end all the same, another one takes over where it stopped. */
  async function pump(): Promise<void> {
    let last = after;
    while (!signal.aborted) {
      try {
        for await (const message of log.subscribeAll({ after: last, signal })) {
          if (message.kind === 'caught_up') state.complete = true;
          else {
            const { event } = message;
            last = event.position;
            // Another process's log may be faster, and its rows be told already: never twice.
            if (event.position <= state.dropped) continue;
            items.push({ event, arrived: clock.monotonic() });
          }
          state.wake();
          while (items.length >= limit && !signal.aborted) await room();
        }
      } catch (error) {
        logger.warn('the read models lost their subscription to the event log', { cause: error });
      }
      if (!signal.aborted) await clock.sleep(RESUBSCRIBE_MS, signal);
    }
  }

  function room(): Promise<void> {
    return new Promise((resolve) => {
      state.makeRoom = resolve;
    });
  }
}
