// Events that the log has delivered and no batch has projected yet: a bounded queue with backpressure on the log.
import type { RecordedEvent } from '#src/domain/event-codec.ts';
import type { Clock } from '#src/ports/clock.ts';
import type { AbortSignalLike, EventLog } from '#src/ports/event-log.ts';
import type { Logger } from '#src/ports/logger.ts';

export type PendingEvents = {
  readonly size: number;
  /** true once the log's head, as it was at some time after the start, has been delivered. */
  readonly complete: boolean;
  /** true while more events may wait in the log than are queued. */
  readonly full: boolean;
  /** The log's connection was lost and has returned: what is queued, and what follows, may be of another history. */
  readonly interrupted: boolean;
  /** Monotonic ms at which the oldest event here arrived; null where there is none. */
  oldestArrival(): number | null;
  /** The oldest `max` events; they stay queued until they are dropped. */
  first(max: number): readonly RecordedEvent[];
  /** Drops every event at or before `position`, those that are yet to be delivered included. */
  dropThrough(position: string): void;
  /** Resolves at the next event, at the first `caught_up`, at `wake`, or when `signal` aborts, if `isEnough` holds then. */
  changed(isEnough?: () => boolean): Promise<void>;
  wake(): void;
};

const RESUBSCRIBE_MS = 500;

type Item = { readonly event: RecordedEvent; readonly arrived: number };

export function pendingEvents(
  { log, clock, logger }: { log: Pick<EventLog, 'subscribeAll'>; clock: Clock; logger: Logger },
  { after, capacity, signal }: { after: string | null; capacity: number; signal: AbortSignalLike },
): PendingEvents {
  const items: Item[] = [];
  const state = {
    complete: false,
    interrupted: false,
    dropped: after ?? '',
    wake: () => {},
    makeRoom: () => {},
  };
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
      return items.length >= capacity;
    },
    get interrupted() {
      return state.interrupted;
    },
    wake: () => state.wake(),
    oldestArrival: () => items[0]?.arrived ?? null,
    first: (max) => items.slice(0, max).map(({ event }) => event),
    dropThrough(position) {
      if (position > state.dropped) state.dropped = position;
      const kept = items.findIndex(({ event }) => event.position > position);
      items.splice(0, kept === -1 ? items.length : kept);
      state.makeRoom();
    },
    changed: (isEnough = () => true) =>
      new Promise((resolve) => {
        if (signal.aborted) resolve();
        else
          state.wake = () => {
            if (isEnough()) resolve();
          };
      }),
  };

  async function pump(): Promise<void> {
    try {
      for await (const message of log.subscribeAll({ after, signal })) {
        if (message.kind === 'caught_up') state.complete = true;
        else if (message.kind === 'resumed') {
          state.interrupted = true;
          state.wake();
          return;
        } else {
          const { event } = message;
          // Another process may have received and projected it before.
          if (event.position <= state.dropped) continue;
          items.push({ event, arrived: clock.monotonic() });
        }
        state.wake();
        while (items.length >= capacity && !signal.aborted) await room();
      }
    } catch (error) {
      logger.warn('the read models lost their subscription to the event log; subscribing again', {
        cause: error,
      });
    }
    if (!signal.aborted) await clock.sleep(RESUBSCRIBE_MS, signal);
    state.interrupted = true;
    state.wake();
  }

  function room(): Promise<void> {
    return new Promise((resolve) => {
      state.makeRoom = resolve;
    });
  }
}
