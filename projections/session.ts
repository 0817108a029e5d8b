// One session of a projector: the rows of a generation, and the events after their position, projected batch after batch by
// this process or by another. It ends with the first failure; to begin again is the projector's decision.
import type { Clock } from '#src/ports/clock.ts';
import { type Barrier, EventQueue } from './event-queue.ts';
import type { GenerationStore } from './generations.ts';
import { type OpenRows, RowsDoubted } from './live-generation.ts';
import type { Progress } from './progress.ts';
import type { FoldedBatch } from './projection.ts';
import { type Role, SessionTiming, type TimingDeps } from './session-timing.ts';
import { SharedRows, type SharedRowsDeps } from './shared-rows.ts';

export type SessionDeps = TimingDeps &
  SharedRowsDeps & {
    /** null: of a rebuild. */
    readonly progress: Pick<Progress, 'position' | 'isAwaited' | 'moved' | 'noteCaughtUp'> | null;
    /** Called once: no event at or behind this is projected. */
    readonly onBarrier: (barrier: Barrier) => void;
    /** Called after each batch with its number of events and the position of the last. */
    readonly onBatch: (events: number, position: string) => void;
    /** Called after each check: no row was missing and every table could be read at `readAt` (monotonic ms). */
    readonly onCheck: (queue: EventQueue, readAt: number) => void;
  };

/** In batches: what the queue holds. */
const QUEUED = 4;

export class Session {
  readonly db: OpenRows['db'];
  readonly queue: EventQueue;
  readonly #deps: SessionDeps;
  readonly #rows: SharedRows;
  readonly #schedule: SessionTiming;
  /** A reader found a note of deleted rows. */
  #isDoubted = false;
  #isEnded = false;
  #isStopped = false;
  /** Somebody reads rows, or asks whether they can be read. */
  readonly read = () => this.#schedule.read();
  readonly #isOver = () => this.#isEnded || this.#mustEnd();

  constructor(rows: OpenRows, deps: SessionDeps) {
    const { log, batchSize, clock, until } = deps;
    this.db = rows.db;
    this.#deps = deps;
    this.#rows = new SharedRows(rows, deps);
    this.#schedule = new SessionTiming(deps);
    const [after, onChange] = [rows.head.position, () => this.ring()];
    this.queue = new EventQueue(log, clock, { after, capacity: QUEUED * batchSize, until, onChange });
  }

  get role(): Role {
    return this.#schedule.role;
  }

  /** Until `end`, or the rows are at `until`; throws what store and log threw, `RowsMoved` or `RowsDoubted`. */
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
    this.#schedule.ring();
  }

  /** Throws `RowsDoubted` if rows were deleted, and ends the session. */
  async demandWhole(): Promise<void> {
    if (await this.#rows.isWhole()) return;
    this.#isDoubted = true;
    this.ring();
    throw new RowsDoubted();
  }

  /** Does the one thing that is due, or waits until something is. */
  async #turn(): Promise<void> {
    const { queue } = this;
    if (this.#mustEnd()) throw new RowsDoubted(undefined, queue.failure ? { cause: queue.failure } : {});
    switch (this.#schedule.due(queue)) {
      case 'check':
        await this.#follow(this.#rows.checkDue());
        this.#deps.onCheck(queue, this.#rows.readAt);
        return this.#schedule.checked();
      case 'purge':
        await this.#deps.purge?.step(this.db);
        return this.#follow();
      case 'follow':
        return this.#follow();
      case 'batch':
        // Where another process projects, it may have been faster.
        if (this.role === 'follows') await this.#follow();
        if (this.#schedule.due(queue) === 'batch') await this.#projectQueued();
        return;
      case null:
        if (queue.size === 0) this.#noteMoved(0);
        if (queue.stoppedAt !== null && !this.#isStopped) this.#deps.onBarrier(queue.stoppedAt);
        this.#isStopped = queue.stoppedAt !== null;
        return this.#schedule.untilDue(queue, this.#isOver);
    }
  }

  async #projectQueued(): Promise<void> {
    const noteWritten = ({ events, last }: FoldedBatch) => {
      this.queue.dropThrough(last.position);
      this.#noteMoved(events);
      this.#deps.onBatch(events, last.position);
    };
    const parts = { rows: this.#rows, queue: this.queue, schedule: this.#schedule };
    if (await projectQueued({ ...this.#deps, ...parts }, noteWritten, this.#isOver)) return;
    this.#schedule.role = 'follows';
    await this.#follow(this.#rows.check());
  }

  /** Events that arrived before an interruption may be of a lost history; those before a failure are not. */
  #mustEnd(): boolean {
    const { isInterrupted, failure, size } = this.queue;
    return this.#isDoubted || isInterrupted || (failure !== null && size === 0);
  }

  /** Another process may have moved the rows. */
  async #follow(following = this.#rows.follow()): Promise<void> {
    const isMoved = await following;
    this.#schedule.followed(isMoved);
    if (!isMoved || this.#rows.head.position === null) return;
    this.queue.dropThrough(this.#rows.head.position);
    this.#noteMoved(0);
  }

  /** The rows are at the projection's position; `events`: how many of the way this process has projected. */
  #noteMoved(events: number): void {
    const { progress, batchSize, until } = this.#deps;
    const { position } = this.#rows.head;
    if (position !== null && position === until) this.end();
    if (position !== null && position !== progress?.position) progress?.moved(position, events);
    const { isComplete, size } = this.queue;
    if (isComplete && size === 0) progress?.noteCaughtUp();
    if (isComplete && size <= batchSize) this.#schedule.isNearHead = true;
  }
}

// ── the queued events, batch after batch, until none is queued ──────────────────────────────────────────

type BatchesDeps = {
  readonly rows: SharedRows;
  readonly queue: EventQueue;
  readonly schedule: SessionTiming;
  readonly store: Pick<GenerationStore, 'disposable'>;
  readonly clock: Clock;
  readonly batchSize: number;
};

type WrittenAndNext = readonly [written: boolean, next: FoldedBatch | null];

/** Ends where `isOver` after a batch, too; false: another process has written meanwhile. */
async function projectQueued(
  deps: BatchesDeps,
  onWritten: (batch: FoldedBatch) => void,
  isOver: () => boolean,
): Promise<boolean> {
  const { rows, queue, schedule, clock } = deps;
  let begunAt = clock.monotonic();
  let batch: FoldedBatch | null = await fold(deps, 0);
  while (batch !== null) {
    const [written, next]: WrittenAndNext = await writeBesideNext(deps, batch);
    if (!written) {
      // The next batch may have been folded over rows that were not written.
      rows.forget();
      return false;
    }
    const now = clock.monotonic();
    schedule.wrote(now, now - begunAt);
    begunAt = now;
    onWritten(batch);
    // An embedded store works in this thread: between two batches others get their turn.
    if (queue.size > 0) await clock.sleep(0);
    batch = isOver() ? null : next;
  }
  return true;
}

/** Where the store works in other threads and a batch waits, it is folded while this one is written. */
async function writeBesideNext(deps: BatchesDeps, batch: FoldedBatch): Promise<WrittenAndNext> {
  const { rows, queue, schedule, store, batchSize } = deps;
  const isBehind = queue.size - batch.events >= batchSize && !schedule.isCheckDue();
  const next = isBehind && !store.disposable ? fold(deps, batch.events) : null;
  const outcomes = await Promise.allSettled([rows.write(batch), next]);
  for (const outcome of outcomes) if (outcome.status === 'rejected') throw outcome.reason;
  return Promise.all([outcomes[0].status === 'fulfilled' && outcomes[0].value, next]);
}

const fold = ({ rows, queue, batchSize }: BatchesDeps, skipped: number): Promise<FoldedBatch> =>
  rows.fold(queue.first(batchSize, skipped));
