// The rows of a generation as one session writes them, beside sessions of other processes, and over a log that may be
// replaced: what was written by others is followed, and what no event says is checked.
import type { RecordedEvent } from '#src/domain/event-codec.ts';
import { EventLogUnavailable } from '#src/ports/event-log.ts';
import { logHolds } from './generations.ts';
import { type GenerationDeps, type OpenRows, RowsDoubted, RowsMoved } from './live-generation.ts';
import type { ReadModel } from './model.ts';
import {
  type FoldedBatch,
  type JudgeReceipt,
  Projection,
  type ProjectionHead,
  readHead,
} from './projection.ts';
import { type CopyRows, type Db, type TableShape, tableShapes } from './rows.ts';
import { readTables } from './whole.ts';

export type SharedRowsDeps = Pick<GenerationDeps, 'log' | 'clock' | 'store'> & {
  readonly judgeReceipt: JudgeReceipt;
  readonly models: readonly ReadModel[];
  readonly batchSize: number;
  /** Of a rebuild. */
  readonly copy?: CopyRows | null;
  /** Whether the rows are still those to project into. */
  readonly isCurrent: (rows: OpenRows) => Promise<boolean>;
};

/** In batches: rows in memory. */
const CACHED_BATCHES = 24;
/** No other process can change an embedded store: its tables are read well within the 30 s of `/health`. */
const EMBEDDED_READ_MS = 10_000;
/** A batch of so many events blocks the thread for 10 ms at most. */
const SMALL_BATCH = 64;

export class SharedRows {
  readonly #rows: OpenRows;
  readonly #deps: SharedRowsDeps;
  readonly #shapes: readonly TableShape[];
  readonly #projection: Projection;
  #readAt = Number.NEGATIVE_INFINITY;

  constructor(rows: OpenRows, deps: SharedRowsDeps) {
    const { models, judgeReceipt, batchSize, log, copy = null } = deps;
    this.#rows = rows;
    this.#deps = deps;
    this.#shapes = tableShapes(models);
    const cachedRows = CACHED_BATCHES * batchSize;
    this.#projection = new Projection(rows.head, { models, judgeReceipt, log, cachedRows, copy });
  }

  /** Where the rows are, as this session has read or written them. */
  get head(): ProjectionHead {
    return this.#projection.head;
  }

  fold(events: readonly RecordedEvent[]): Promise<FoldedBatch> {
    return this.#projection.fold(this.#db, events);
  }

  /** false: another process has written, and the batch was not. Throws `RowsDoubted` as `check`. */
  async write(batch: FoldedBatch): Promise<boolean> {
    const { store, clock } = this.#deps;
    // An embedded store works in this thread: between the two halves of a large batch others get their turn.
    if (batch.events > SMALL_BATCH && store.disposable) await clock.sleep(0);
    await this.#assertHistory();
    return this.#projection.write(this.#db, batch);
  }

  /** Rows in memory are of a batch that was not written. */
  forget(): void {
    this.#projection.forget();
  }

  /**
   * Reads how far another process has come; returns whether it has moved the rows. Throws `RowsDoubted` if rows were deleted,
   * `RowsMoved` if they were rolled back.
   */
  async follow(): Promise<boolean> {
    const head = await readHead(this.#db);
    if (head.loss !== null) throw new RowsDoubted();
    const before = this.head;
    if (head.version === before.version) return false;
    if (head.version < before.version || (head.position ?? '') < (before.position ?? ''))
      throw new RowsMoved();
    this.#projection.moved(head);
    return head.position !== null && head.position !== before.position;
  }

  /**
   * As `follow`, with what no event says: another handle or schema (`RowsMoved`), rows that somebody changed or revoked, a log
   * with another history (`RowsDoubted`).
   */
  async check(): Promise<boolean> {
    await this.#assertCurrent();
    const isMoved = await this.follow();
    await this.#assertHistory();
    await readTables(this.#db, this.#shapes);
    this.#readAt = this.#deps.clock.monotonic();
    return isMoved;
  }

  /** As `check`; of an embedded store whose tables were read lately only the handle, and what the log says of the rows. */
  async checkDue(): Promise<boolean> {
    const { store, clock } = this.#deps;
    if (!store.disposable || clock.monotonic() - this.#readAt >= EMBEDDED_READ_MS) return this.check();
    await this.#assertCurrent();
    await this.#assertHistory();
    return false;
  }

  /** Monotonic ms at which every table was read last. */
  get readAt(): number {
    return this.#readAt;
  }

  /** false: a note says that rows were deleted. */
  async isWhole(): Promise<boolean> {
    return (await readHead(this.#db)).loss === null;
  }

  async #assertCurrent(): Promise<void> {
    if (!(await this.#deps.isCurrent(this.#rows))) throw new RowsMoved();
  }

  /** Throws `RowsDoubted` if the log lacks the rows' last event: before each batch, so that none joins two histories. */
  async #assertHistory(): Promise<void> {
    try {
      if (await logHolds(this.#deps.log, this.head)) return;
    } catch (error) {
      // An unavailable log proves nothing.
      if (error instanceof EventLogUnavailable) return;
      throw error;
    }
    throw new RowsDoubted();
  }

  get #db(): Db {
    return this.#rows.db;
  }
}
