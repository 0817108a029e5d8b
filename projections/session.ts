// One session of a projector: the rows of a generation, and the events after their position, projected batch after batch by
// this process or by another. It ends with the first failure; to begin again is the projector's decision.
import { Cancel } from '#src/lib/time.ts';
import { EventLogUnavailable } from '#src/ports/event-log.ts';
import { EventQueue } from './event-queue.ts';
import { logHolds } from './generations.ts';
import { type GenerationDeps, type OpenRows, RowsDoubted, RowsMoved } from './live-generation.ts';
import type { ReadModel } from './model.ts';
import type { Progress } from './progress.ts';
import {
  type FoldedBatch,
  type JudgeReceipt,
  Projection,
  type ProjectionHead,
  readHead,
} from './projection.ts';
import type { Purge } from './purge.ts';
import { type TableShape, tableShapes } from './rows.ts';
import { readTables } from './whole.ts';

export type SessionDeps = Pick<GenerationDeps, 'log' | 'clock' | 'store'> & {
  readonly judgeReceipt: JudgeReceipt;
  readonly models: readonly ReadModel[];
  /** Events in one transaction at most: it blocks the event loop of an embedded store for its length. */
  readonly batchSize: number;
  /** Position of an event after which the session ends; null: it does not. */
  readonly until: string | null;
  /** null, as `purge`: of a rebuild. */
  readonly progress: Pick<Progress, 'position' | 'isAwaited' | 'moved' | 'noteCaughtUp'> | null;
  readonly purge: Purge | null;
  /** Whether the rows are still those to project into. */
  readonly isCurrent: (rows: OpenRows) => Promise<boolean>;
  /** Called once: no event at or behind this damage is projected. */
  readonly onDamage: (damage: NonNullable<EventQueue['damage']>) => void;
  /** Called after each batch with its number of events. */
  readonly onBatch: (events: number) => void;
  /** Called once a second: every table can be read, and no row is missing. */
  readonly onLook: (queue: EventQueue) => void;
};

/** `projects`: this process wrote last. `follows`: another one did; this one takes over if that one stops. */
export type Role = 'projects' | 'follows';

type WrittenAndNext = readonly [written: boolean, next: FoldedBatch | null];

/** In batches: rows in memory. */
const CACHED_BATCHES = 24;
/** In batches: what the queue holds. */
const QUEUED = 4;
/**
 * One transaction costs about the same for one event as for a hundred: without a waiting reader a batch gathers for `times`
 * as long as the last one took, so that projection leaves 95 % of the thread to executions.
 */
const LINGER_MS = { least: 100, most: 500, times: 20 };
/**
 * After a batch, readers that wait get the next one when so many times its length has passed: reads of what does not exist
 * take a fifth of the thread at most, however many they are.
 */
const REST = 4;
/** A batch of so many events blocks the thread for 10 ms at most. */
const SMALL_BATCH = 64;
/** How often store and log are checked. With events queued, rows that do not move for so long have lost their projector. */
const LOOK_MS = 1000;

export const lingerAfter = (tookMs: number): number =>
  Math.min(LINGER_MS.most, Math.max(LINGER_MS.least, LINGER_MS.times * tookMs));

export class Session {
  readonly rows: OpenRows;
  readonly queue: EventQueue;
  /** Monotonic ms. */
  readonly begunAt: number;
  role: Role = 'projects';
  readonly #deps: SessionDeps;
  readonly #projection: Projection;
  readonly #shapes: readonly TableShape[];
  /** The rows have come within a batch of the log's head. */
  #isNearHead = false;
  /** A reader found a note of deleted rows. */
  #isDoubted = false;
  #isEnded = false;
  #isStopped = false;
  /** How long the next batch gathers where no reader waits. */
  #lingerMs = lingerAfter(0);
  /** Monotonic ms: until then, no batch begins for a reader that waits. */
  #restsUntil = 0;
  #looksAt: number;
  #followedAt: number;
  #movedAt: number;
  #ring = () => {};

  constructor(rows: OpenRows, deps: SessionDeps) {
    const { log, models, judgeReceipt, batchSize, clock, until } = deps;
    this.rows = rows;
    this.#deps = deps;
    this.#shapes = tableShapes(models);
    this.#projection = new Projection(rows.head, {
      models,
      judgeReceipt,
      cachedRows: CACHED_BATCHES * batchSize,
    });
    this.begunAt = clock.monotonic();
    this.#followedAt = this.begunAt;
    this.#movedAt = this.begunAt;
    this.#looksAt = this.begunAt + LOOK_MS;
    const queued = { after: rows.head.position, capacity: QUEUED * batchSize, until };
    this.queue = new EventQueue(log, clock, { ...queued, onChange: () => this.ring() });
  }

  /** Where the rows are, as this session has read or written them. */
  get head(): ProjectionHead {
    return this.#projection.head;
  }

  /** The damage before which the rows stop; null: they do not, or have not come so far. */
  get stoppedAt(): EventQueue['damage'] {
    return this.#isStopped ? this.queue.damage : null;
  }

  /** Until `end`, or the rows are at `until`; throws what store and log threw, or one of the two errors above. */
  async run(): Promise<void> {
    try {
      while (!this.#isEnded) await this.#turn();
    } finally {
      this.queue.close();
    }
  }

  end(): void {
    this.#isEnded = true;
    this.ring();
  }

  /** Something has changed that a turn may wait for. */
  ring(): void {
    this.#ring();
  }

  /** Throws `RowsDoubted` if rows were deleted, and ends the session. */
  async demandWhole(): Promise<void> {
    const { loss } = await readHead(this.rows.db);
    if (loss === null) return;
    this.#isDoubted = true;
    this.ring();
    throw new RowsDoubted();
  }

  /** Does the one thing that is due, or waits until something is. */
  async #turn(): Promise<void> {
    const { queue, rows } = this;
    const { clock, purge } = this.#deps;
    if (this.#mustEnd()) throw new RowsDoubted(undefined, queue.failure ? { cause: queue.failure } : {});
    const now = clock.monotonic();
    if (now >= this.#looksAt) await this.#look();
    else if (this.#purgeInMs() === 0) {
      await purge?.step(rows.db);
      await this.#follow();
    } else if (now >= this.#batchAt()) {
      // Where another process projects, it may have been faster.
      if (this.role === 'follows') await this.#follow();
      if (now >= this.#batchAt()) await this.#projectQueued();
    } else if (now >= this.#followAt()) await this.#follow();
    else {
      if (queue.size === 0) this.#noteMoved(0);
      if (queue.size === 0 && queue.damage !== null && !this.#isStopped) {
        this.#isStopped = true;
        this.#deps.onDamage(queue.damage);
      }
      await this.#untilDue();
    }
  }

  async #untilDue(): Promise<void> {
    const { clock } = this.#deps;
    const at = this.#dueAt();
    const bell = new Cancel();
    this.#ring = () => {
      if (this.#isEnded || this.#mustEnd() || this.#dueAt() < at) bell.abort();
    };
    this.#ring();
    await clock.sleep(at - clock.monotonic(), bell);
    this.#ring = () => {};
  }

  /** Events that arrived before an interruption may be of a lost history; those before a failure are not. */
  #mustEnd(): boolean {
    const { isInterrupted, failure, size } = this.queue;
    return this.#isDoubted || isInterrupted || (failure !== null && size === 0);
  }

  /** Monotonic ms, as those that follow. */
  #dueAt(): number {
    const purgeAt = this.#deps.clock.monotonic() + this.#purgeInMs();
    return Math.min(this.#looksAt, this.#batchAt(), this.#followAt(), purgeAt);
  }

  #batchAt(): number {
    const { oldestArrival, last, failure, damage, size } = this.queue;
    if (oldestArrival === null || last === null) return Number.POSITIVE_INFINITY;
    const { batchSize, progress, until } = this.#deps;
    if (failure !== null || damage !== null || last === until) return 0;
    const gathered = size >= batchSize ? 0 : oldestArrival + this.#lingerMs;
    const at = this.role === 'projects' ? gathered : Math.max(oldestArrival, this.#movedAt) + LOOK_MS;
    return progress?.isAwaited(last) ? Math.min(at, this.#restsUntil) : at;
  }

  #followAt(): number {
    const follows = this.role === 'follows' && this.queue.size > 0;
    return follows ? this.#followedAt + LINGER_MS.least : Number.POSITIVE_INFINITY;
  }

  /** Under a steady load there is always an event to come: within a batch of the head is near enough. */
  #purgeInMs(): number {
    const { purge, batchSize } = this.#deps;
    const mayPurge = purge !== null && this.#isNearHead && this.queue.size <= batchSize;
    return mayPurge ? purge.dueInMs(this.role === 'projects') : Number.POSITIVE_INFINITY;
  }

  async #projectQueued(): Promise<void> {
    const { clock } = this.#deps;
    let begunAt = clock.monotonic();
    let batch: FoldedBatch | null = await this.#fold(0);
    while (batch !== null) {
      const [written, next]: WrittenAndNext = await this.#writeBesideNext(batch);
      if (!written) return this.#overtaken();
      const now = clock.monotonic();
      this.role = 'projects';
      this.#lingerMs = lingerAfter(now - begunAt);
      this.#restsUntil = now + REST * (now - begunAt);
      begunAt = now;
      this.queue.dropThrough(batch.last.position);
      this.#noteMoved(batch.events);
      this.#deps.onBatch(batch.events);
      // An embedded store works in this thread: between two batches others get their turn.
      if (this.queue.size > 0) await clock.sleep(0);
      batch = this.#isEnded || this.#mustEnd() ? null : next;
    }
  }

  /** Where the store works in other threads and a batch waits, it is folded while this one is written. */
  async #writeBesideNext(batch: FoldedBatch): Promise<WrittenAndNext> {
    const { store, batchSize, clock } = this.#deps;
    const isBehind = this.queue.size - batch.events >= batchSize && clock.monotonic() < this.#looksAt;
    const next = isBehind && !store.disposable ? this.#fold(batch.events) : null;
    const outcomes = await Promise.allSettled([this.#write(batch), next]);
    for (const outcome of outcomes) if (outcome.status === 'rejected') throw outcome.reason;
    return Promise.all([outcomes[0].status === 'fulfilled' && outcomes[0].value, next]);
  }

  #fold(skipped: number): Promise<FoldedBatch> {
    return this.#projection.fold(this.rows.db, this.queue.first(this.#deps.batchSize, skipped));
  }

  async #write(batch: FoldedBatch): Promise<boolean> {
    // An embedded store works in this thread: between the two halves of a large batch others get their turn.
    if (batch.events > SMALL_BATCH && this.#deps.store.disposable) await this.#deps.clock.sleep(0);
    await this.#assertHistory();
    return this.#projection.write(this.rows.db, batch);
  }

  async #overtaken(): Promise<void> {
    // The next batch may have been folded over rows that were not written.
    this.#projection.forget();
    this.role = 'follows';
    if (!(await this.#deps.isCurrent(this.rows))) throw new RowsMoved();
    await this.#follow();
  }

  /** What no event says: another handle or schema, rows that somebody changed or revoked, a log with another history. */
  async #look(): Promise<void> {
    if (!(await this.#deps.isCurrent(this.rows))) throw new RowsMoved();
    await this.#follow();
    await this.#assertHistory();
    await readTables(this.rows.db, this.#shapes);
    this.#deps.onLook(this.queue);
    this.#looksAt = this.#deps.clock.monotonic() + LOOK_MS;
  }

  /** Before events are projected over the rows, too: no batch joins two histories. */
  async #assertHistory(): Promise<void> {
    try {
      if (await logHolds(this.#deps.log, this.#projection.head)) return;
    } catch (error) {
      // An unavailable log proves nothing.
      if (error instanceof EventLogUnavailable) return;
      throw error;
    }
    throw new RowsDoubted();
  }

  /** Reads how far another process has come. */
  async #follow(): Promise<void> {
    const head = await readHead(this.rows.db);
    this.#followedAt = this.#deps.clock.monotonic();
    if (head.loss !== null) throw new RowsDoubted();
    const before = this.#projection.head;
    if (head.version === before.version) return;
    if (head.version < before.version || (head.position ?? '') < (before.position ?? ''))
      throw new RowsMoved();
    this.#projection.moved(head);
    if (head.position === null || head.position === before.position) return;
    this.role = 'follows';
    this.#movedAt = this.#followedAt;
    this.queue.dropThrough(head.position);
    this.#noteMoved(0);
  }

  /** The rows are at the projection's position; `events`: how many of the way this process has projected. */
  #noteMoved(events: number): void {
    const { progress, batchSize, until } = this.#deps;
    const { position } = this.head;
    if (position !== null && position === until) this.end();
    if (position !== null && position !== progress?.position) progress?.moved(position, events);
    const { isComplete, size } = this.queue;
    if (isComplete && size === 0) progress?.noteCaughtUp();
    if (isComplete && size <= batchSize) this.#isNearHead = true;
  }
}
