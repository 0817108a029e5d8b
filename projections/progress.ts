// Where the rows of this process are in the event log: the readers that wait for a later position, and whether the rows have
// caught up with the head that the log had at first; until then counts and lists cover a part of the log only.
import { type Latch, latch } from '#src/lib/latch.ts';
import { type AbortSignalLike, Cancel, unlessAborted } from '#src/lib/time.ts';
import type { Clock } from '#src/ports/clock.ts';
import type { Logger } from '#src/ports/logger.ts';

export type ProgressDeps = { readonly clock: Clock; readonly logger: Logger };

type Reader = { readonly position: string; readonly answer: (reached: boolean) => void };

/** A replay of more events than this is logged. */
const LONG_REPLAY = 2000;
const LOG_EVERY_MS = 5000;

export class Progress {
  /** Monotonic ms at which the rows contained all that the log had delivered, or of the start. */
  caughtUpAt: number;
  /** Rows that were read before are gone, and those that replace them have not caught up. */
  isTakenBack = false;
  readonly #deps: ProgressDeps;
  /** Called whenever a reader begins to wait. */
  readonly #onWait: () => void;
  readonly #caughtUp: Latch<true>;
  readonly #readers = new Set<Reader>();
  #position: string | null = null;
  #moved = Promise.withResolvers<void>();
  #replay: Replay | null = null;
  #ended = false;

  constructor(deps: ProgressDeps, onWait: () => void) {
    this.#deps = deps;
    this.#onWait = onWait;
    this.#caughtUp = latch(deps.clock);
    this.caughtUpAt = deps.clock.monotonic();
  }

  /** Position of the last event whose rows can be read; null: none, or not known yet. */
  get position(): string | null {
    return this.#position;
  }

  /** The rows are at `from` and the log's head is `head`. Rows that were rolled back have to catch up again. */
  begin(from: string | null, head: string | null): void {
    if (isBefore(from, this.#position)) this.#takeBack();
    this.#replay = head === null ? null : new Replay(head, this.#deps);
    this.#arrive(from);
  }

  /** The rows are not of this log, or not all there: none can be read, and they have to catch up from the first event. */
  lost(): void {
    this.#takeBack();
    this.#position = null;
    this.#replay = null;
  }

  /** Rows up to `position` can be read; `events`: how many of them were projected here since the last call. */
  moved(position: string, events: number): void {
    this.#replay?.projected(events);
    this.#arrive(position);
  }

  /** Whether a reader waits for rows that events up to `position` make. */
  isAwaited(position: string): boolean {
    for (const reader of this.#readers) if (reader.position <= position) return true;
    return false;
  }

  /** true as soon as rows up to `position` can be read; false after `timeoutMs`, or at the end. */
  reached(position: string, timeoutMs: number): Promise<boolean> {
    if (!isBefore(this.#position, position)) return Promise.resolve(true);
    if (this.#ended || timeoutMs <= 0) return Promise.resolve(false);
    return new Promise((resolve) => {
      const timer = new Cancel();
      const reader: Reader = {
        position,
        answer: (reached) => {
          this.#readers.delete(reader);
          timer.abort();
          resolve(reached);
        },
      };
      this.#readers.add(reader);
      this.#onWait();
      void this.#deps.clock.sleep(timeoutMs, timer).then(() => reader.answer(false));
    });
  }

  /** Resolves when the rows are no longer at `position`, and when `signal` aborts. */
  async movedFrom(position: string | null, signal: AbortSignalLike): Promise<void> {
    while (this.#position === position && !signal.aborted) await unlessAborted(this.#moved.promise, signal);
  }

  /** Whether the rows have caught up; waits for it up to `timeoutMs`. Never throws. */
  async ready(timeoutMs: number): Promise<boolean> {
    return (await this.#caughtUp.wait(timeoutMs)) !== null;
  }

  /** The rows contain all that the log has delivered. */
  noteCaughtUp(): void {
    this.caughtUpAt = this.#deps.clock.monotonic();
  }

  /** Answers false to all waiting readers, now and later. */
  end(): void {
    this.#ended = true;
    for (const reader of this.#readers) reader.answer(false);
  }

  #takeBack(): void {
    this.#caughtUp.clear();
    this.isTakenBack = true;
  }

  #arrive(position: string | null): void {
    this.#position = position;
    this.#moved.resolve();
    this.#moved = Promise.withResolvers();
    for (const reader of this.#readers) if (!isBefore(position, reader.position)) reader.answer(true);
    if (this.#replay !== null && isBefore(position, this.#replay.to)) return;
    this.#replay?.ended();
    this.#replay = null;
    this.isTakenBack = false;
    this.#caughtUp.set(true);
  }
}

/** The log's events from a start to the head that it had then; a long one is logged. */
class Replay {
  readonly to: string;
  readonly #clock: Clock;
  readonly #logger: Logger;
  readonly #since: number;
  #events = 0;
  #loggedAt: number | null = null;

  constructor(to: string, { clock, logger }: ProgressDeps) {
    this.to = to;
    this.#clock = clock;
    this.#logger = logger;
    this.#since = clock.monotonic();
  }

  projected(events: number): void {
    this.#events += events;
    const now = this.#clock.monotonic();
    if (this.#loggedAt === null) {
      if (this.#events < LONG_REPLAY) return;
      this.#logger.info('replaying the event log into the read models');
    } else {
      if (now - this.#loggedAt < LOG_EVERY_MS) return;
      this.#logger.info('the read models are still being replayed', this.#figures());
    }
    this.#loggedAt = now;
  }

  ended(): void {
    if (this.#loggedAt === null) return;
    this.#logger.info('the read models have caught up with the event log', this.#figures());
  }

  #figures(): { events: number; seconds: number; eventsPerSecond: number } {
    const events = this.#events;
    const seconds = Math.max(0.001, (this.#clock.monotonic() - this.#since) / 1000);
    return { events, seconds: Math.round(seconds), eventsPerSecond: Math.round(events / seconds) };
  }
}

/** Positions compare as text; null is before the first. */
export const isBefore = (a: string | null, b: string | null): boolean => b !== null && (a === null || a < b);
