// What a session does next, and when. All times are monotonic ms.
import { Cancel } from '#src/lib/time.ts';
import type { Clock } from '#src/ports/clock.ts';
import type { EventQueue } from './event-queue.ts';
import type { GenerationStore } from './generations.ts';
import type { Progress } from './progress.ts';
import type { Purge } from './purge.ts';

/** `projects`: this process wrote last. `follows`: another one did; this one takes over if that one stops. */
export type Role = 'projects' | 'follows';

export type TimingDeps = {
  readonly clock: Pick<Clock, 'monotonic' | 'sleep'>;
  /** Events in one transaction at most: it blocks the event loop of an embedded store for its length. */
  readonly batchSize: number;
  /** Position of an event after which the session ends; null: it does not. */
  readonly until: string | null;
  /** null, as `purge`: of a rebuild. */
  readonly progress: Pick<Progress, 'isAwaited'> | null;
  readonly purge: Purge | null;
  readonly store: Pick<GenerationStore, 'disposable'>;
};

type Queue = Pick<EventQueue, 'size' | 'oldestArrival' | 'last' | 'failure' | 'barrier'>;

/** `check`: of what no event says. `follow`: read how far another process has come. */
type Step = 'check' | 'purge' | 'batch' | 'follow';

/**
 * One transaction costs about the same for one event as for a hundred: without a waiting reader a batch gathers for `times`
 * as long as the last one took, so that projection leaves 95 % of the thread to executions.
 */
const LINGER_MS = { least: 100, most: 500, times: 20 };
/**
 * Of an embedded store, which no other process reads, while no one has read rows for a second: until so many events
 * are there, or for so long. At a low rate a batch for each call is a fifth of what the call costs.
 */
const GATHERED = { events: 64, ms: 1500 };
/**
 * After a batch, readers that wait get the next one when so many times its length has passed: reads of what does not exist
 * take a fifth of the thread at most, however many they are.
 */
const REST = 4;
/**
 * How often store and log are checked while rows are read or written. With events queued, rows that do not move for so long have lost
 * their projector.
 */
const CHECK_MS = 1000;
/**
 * While no one reads or writes; well within the 30 s of `/health`. The first reader has them checked at once. Also of a
 * rebuild, whose rows have no reader: for a check, the next batch waits.
 */
const RESTING_MS = 10_000;

export const lingerAfter = (tookMs: number): number =>
  Math.min(LINGER_MS.most, Math.max(LINGER_MS.least, LINGER_MS.times * tookMs));

export class SessionTiming {
  role: Role = 'projects';
  /** The rows have come within a batch of the log's head. */
  isNearHead = false;
  readonly #deps: TimingDeps;
  #readAt = Number.NEGATIVE_INFINITY;
  #usedAt = Number.NEGATIVE_INFINITY; // read or written here, but by no rebuild
  /** How long the next batch gathers where no reader waits. */
  #lingerMs = lingerAfter(0);
  /** Until then, no batch begins for a reader that waits. */
  #restsUntil = 0;
  #checkedAt: number;
  #followedAt: number;
  /** When another process was seen to have moved the rows. */
  #movedAt: number;
  #ring = () => {};

  constructor(deps: TimingDeps) {
    this.#deps = deps;
    const now = deps.clock.monotonic();
    this.#checkedAt = now;
    this.#followedAt = now;
    this.#movedAt = now;
  }

  /** The one thing that is due; null: nothing yet. */
  due(queue: Queue): Step | null {
    const now = this.#deps.clock.monotonic();
    if (this.isCheckDue()) return 'check';
    if (this.#purgeInMs(queue) === 0) return 'purge';
    if (now >= this.#batchAt(queue)) return 'batch';
    return now >= this.#followAt(queue) ? 'follow' : null;
  }

  isCheckDue(): boolean {
    return this.#deps.clock.monotonic() >= this.#checkAt();
  }

  /** Waits until something is due, or at a `ring` `isOver`. */
  async untilDue(queue: Queue, isOver: () => boolean): Promise<void> {
    const { clock } = this.#deps;
    const at = this.#dueAt(queue);
    const bell = new Cancel();
    this.#ring = () => {
      if (isOver() || this.#dueAt(queue) < at) bell.abort();
    };
    this.#ring();
    await clock.sleep(at - clock.monotonic(), bell);
    this.#ring = () => {};
  }

  /** Something has changed that `untilDue` may wait for. */
  ring(): void {
    this.#ring();
  }

  checked(): void {
    this.#checkedAt = this.#deps.clock.monotonic();
  }

  /** Somebody reads rows, or asks whether they can be read. */
  read(): void {
    const isFirst = this.#usedAt <= this.#checkedAt || !this.#isRead();
    this.#readAt = this.#deps.clock.monotonic();
    this.#usedAt = this.#readAt;
    if (isFirst) this.#ring();
  }

  /** `moved`: another process has moved the rows. */
  followed(moved: boolean): void {
    this.#followedAt = this.#deps.clock.monotonic();
    if (!moved) return;
    this.role = 'follows';
    this.#movedAt = this.#followedAt;
  }

  /** This process has written a batch, `now`. */
  wrote(now: number, tookMs: number): void {
    this.role = 'projects';
    if (this.#deps.progress !== null) this.#usedAt = now;
    this.#lingerMs = lingerAfter(tookMs);
    this.#restsUntil = now + REST * tookMs;
  }

  #dueAt(queue: Queue): number {
    const purgeAt = this.#deps.clock.monotonic() + this.#purgeInMs(queue);
    return Math.min(this.#checkAt(), this.#batchAt(queue), this.#followAt(queue), purgeAt);
  }

  #checkAt(): number {
    return this.#checkedAt + (this.#usedAt > this.#checkedAt ? CHECK_MS : RESTING_MS);
  }

  #isRead(): boolean {
    return this.#deps.clock.monotonic() - this.#readAt < CHECK_MS;
  }

  #batchAt({ oldestArrival, last, failure, barrier, size }: Queue): number {
    if (oldestArrival === null || last === null) return Number.POSITIVE_INFINITY;
    const { batchSize, progress, until, store } = this.#deps;
    if (failure !== null || barrier !== null || last === until) return 0;
    const gathers = store.disposable && this.isNearHead && !this.#isRead() && size < GATHERED.events;
    const gathered = size >= batchSize ? 0 : oldestArrival + (gathers ? GATHERED.ms : this.#lingerMs);
    const at = this.role === 'projects' ? gathered : Math.max(oldestArrival, this.#movedAt) + CHECK_MS;
    return progress?.isAwaited(last) ? Math.min(at, this.#restsUntil) : at;
  }

  #followAt({ size }: Queue): number {
    return this.role === 'follows' && size > 0
      ? this.#followedAt + LINGER_MS.least
      : Number.POSITIVE_INFINITY;
  }

  /** Under a steady load there is always an event to come: within a batch of the head is near enough. */
  #purgeInMs({ size }: Queue): number {
    const { purge, batchSize } = this.#deps;
    const mayPurge = purge !== null && this.isNearHead && size <= batchSize;
    return mayPurge ? purge.dueInMs(this.role === 'projects') : Number.POSITIVE_INFINITY;
  }
}
