// Events that the log has delivered and no batch has projected yet: a bounded queue with backpressure on the log.
import type { RecordedEvent } from '#src/domain/event-codec.ts';
import { newerKind } from '#src/domain/event-versions.ts';
import { Cancel } from '#src/lib/time.ts';
import type { Clock } from '#src/ports/clock.ts';
import { type EventLog, EventOfNewerRelease, EventUnreadable, LogDamaged } from '#src/ports/event-log.ts';

type Log = Pick<EventLog, 'subscribeAll'>;

export type QueueOptions = {
  readonly after: string | null;
  readonly capacity: number;
  /** Position of the last event that is queued; null: all are. */
  readonly until: string | null;
  /** Called at every change but the removal of events. */
  readonly onChange: () => void;
};

/** What no event behind it is projected over: damage of the log, or an event of a newer release. */
export type Barrier = EventUnreadable | LogDamaged;

export class EventQueue {
  /** The log's head, as it was at some time after the start, has been delivered. false at a barrier. */
  isComplete = false;
  /** The log's connection was lost and has returned: what is queued, and what follows, may be of another history. */
  isInterrupted = false;
  /** Why the subscription ended; null: it has not. */
  failure: unknown = null;
  /** Behind the events that are queued: none is projected over a gap, or the rows would contradict the log. */
  barrier: Barrier | null = null;
  readonly #items: { readonly event: RecordedEvent; readonly arrivedAt: number }[] = [];
  readonly #clock: Pick<Clock, 'monotonic'>;
  readonly #options: QueueOptions;
  readonly #closing = new Cancel();
  #dropped: string;
  #makeRoom = () => {};

  constructor(log: Log, clock: Pick<Clock, 'monotonic'>, options: QueueOptions) {
    this.#clock = clock;
    this.#options = options;
    this.#dropped = options.after ?? '';
    void this.#deliver(log);
  }

  get size(): number {
    return this.#items.length;
  }

  /** More events may wait in the log than are queued. */
  get isFull(): boolean {
    return this.size >= this.#options.capacity;
  }

  /** Monotonic ms at which the oldest event arrived; null: there is none. */
  get oldestArrival(): number | null {
    return this.#items[0]?.arrivedAt ?? null;
  }

  /** Before which the rows stop; null: they do not, or have not come so far. */
  get stoppedAt(): Barrier | null {
    return this.size === 0 ? this.barrier : null;
  }

  /** Position of the newest event; null: there is none. */
  get last(): string | null {
    return this.#items.at(-1)?.event.position ?? null;
  }

  /** The oldest `max` events behind the first `skipped`; they stay queued until they are dropped. */
  first(max: number, skipped = 0): readonly RecordedEvent[] {
    return this.#items.slice(skipped, skipped + max).map(({ event }) => event);
  }

  /** Drops every event at or before `position`, those that are yet to be delivered included. */
  dropThrough(position: string): void {
    if (position > this.#dropped) this.#dropped = position;
    const kept = this.#items.findIndex(({ event }) => event.position > position);
    this.#items.splice(0, kept === -1 ? this.size : kept);
    this.#makeRoom();
  }

  close(): void {
    this.#closing.abort();
    this.#makeRoom();
  }

  async #deliver(log: Log): Promise<void> {
    const { after, until, onChange } = this.#options;
    try {
      for await (const message of log.subscribeAll({ after, signal: this.#closing })) {
        if (message.kind === 'caught_up') this.isComplete = true;
        else if (message.kind === 'resumed') {
          this.isInterrupted = true;
          return onChange();
        } else {
          const { event } = message;
          const newer = newerKind(event);
          if (newer !== null) throw new EventOfNewerRelease(newer, event);
          while (!this.#closing.aborted && this.isFull) await this.#room();
          // Another process may have received and projected it before.
          if (this.#closing.aborted || event.position <= this.#dropped) continue;
          this.#items.push({ event, arrivedAt: this.#clock.monotonic() });
          if (event.position === until) return onChange();
        }
        onChange();
      }
      this.failure ??= new Error('the subscription to the event log has ended');
    } catch (error) {
      if (error instanceof EventUnreadable || error instanceof LogDamaged) {
        this.barrier = error;
        this.isComplete = false;
      } else this.failure = error;
    }
    onChange();
  }

  #room(): Promise<void> {
    return new Promise((resolve) => {
      this.#makeRoom = resolve;
    });
  }
}
