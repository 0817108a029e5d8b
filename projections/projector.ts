// The projector of a service: projects the event log into this release's generation of read models, in every process, and
// gives readers the handle of its rows once they are validated. It survives the absence of the store and of the log.
import { LIMITS } from '#src/domain/limits.ts';
import { isDefect } from '#src/lib/defect.ts';
import { type Latch, latch } from '#src/lib/latch.ts';
import { Cancel, succeedsWithin, unlessAborted } from '#src/lib/time.ts';
import { EventLogUnavailable } from '#src/ports/event-log.ts';
import { type GenerationDeps, LiveGeneration } from './live-generation.ts';
import type { ReadModel } from './model.ts';
import { Progress } from './progress.ts';
import type { JudgeReceipt } from './projection.ts';
import { KEEP_ALL, makePurge, type Purge, type RetentionMs } from './purge.ts';
import { unavailable } from './read-models.ts';
import { READ_MODELS } from './registry.ts';
import type { Db } from './rows.ts';
import { type Role, RowsDoubted, RowsMoved, Session } from './session.ts';

export type ProjectorDeps = GenerationDeps & { readonly judgeReceipt: JudgeReceipt };

export type ProjectorOptions = {
  readonly models?: readonly ReadModel[];
  readonly batchSize?: number;
  /** How long rows are kept; without it, always. */
  readonly retentionMs?: RetentionMs;
  /** Nothing is opened or projected before it resolves; without it, the projector starts at once. */
  readonly after?: Promise<void>;
};

/**
 * `damaged`: the rows stop before a damaged event. `opening`: rows are opened and compared with the log. `rebuilding`: rows that were read before are gone, and those that
 * replace them have not caught up. `log_failed`, `store_failed`: it pauses, and opens the rows again.
 */
export type ProjectorState =
  | Role
  | 'damaged'
  | 'waiting'
  | 'opening'
  | 'rebuilding'
  | 'log_failed'
  | 'store_failed'
  | 'stopped';

const BATCH_SIZE = 500;
const PAUSE_MS = { first: 100, last: 1000 };
const STOP_MS = 5000;
/** Rows that were read within this time are readable. */
const READ_MS = 30_000;
const STOPPED =
  'the read models stop before damage in the event log: later events are not shown; put back a backup and restart';

export class Projector {
  readonly #deps: ProjectorDeps;
  readonly #after: Promise<void> | undefined;
  readonly #models: readonly ReadModel[];
  readonly #batchSize: number;
  readonly #purge: Purge;
  readonly #generation: LiveGeneration;
  readonly #progress: Progress;
  /** Notes of checkpoints in other generations of this log, since rows were compared with it. */
  readonly #compared: Latch<readonly string[]>;
  /** The schema of rows that were compared with the log and counted. */
  readonly #validated: Latch<string>;
  readonly #ending = new Cancel();
  readonly #running: Promise<void>;
  #session: Session | null = null;
  /** While there is no session. */
  #between: Exclude<ProjectorState, Role | 'rebuilding'> = 'waiting';
  #failures = 0;
  /** Monotonic ms at which every table was read last. */
  #readAt = Number.NEGATIVE_INFINITY;

  constructor(deps: ProjectorDeps, options: ProjectorOptions = {}) {
    const { models = READ_MODELS, batchSize = BATCH_SIZE, retentionMs = KEEP_ALL, after } = options;
    this.#deps = deps;
    this.#after = after;
    this.#models = models;
    this.#batchSize = batchSize;
    this.#purge = makePurge(deps, retentionMs);
    this.#progress = new Progress(deps, () => this.#session?.ring());
    this.#compared = latch(deps.clock);
    this.#validated = latch(deps.clock);
    this.#generation = new LiveGeneration(deps, models, {
      ending: this.#ending,
      onDoubt: () => this.#invalidate(),
      onCompared: (elsewhere) => this.#compared.set(elsewhere),
      onEmptyLog: () => this.#progress.begin(null, null),
    });
    this.#running = this.#run();
  }

  /**
   * The handle that queries run on: of this release's generation, validated against the log. Throws
   * `Fault('read_models_unavailable')` if there is none within 1 s, and what the store throws if that is unavailable. The
   * handle changes after lost connections, so request it each time.
   */
  async open(): Promise<Db> {
    const schema = await this.#validated.wait(LIMITS.answerWaitMs.max);
    if (schema === null) throw unavailable(new Error('no generation of the read models is validated'));
    return this.#deps.store.open(schema);
  }

  get state(): ProjectorState {
    if (this.#progress.isTakenBack && this.#between !== 'store_failed') return 'rebuilding';
    if (this.stoppedAt() !== null) return 'damaged';
    return this.#session?.role ?? this.#between;
  }

  /** What this process does for the rows; null: it cannot reach them now. */
  role(): Role | null {
    return this.#session?.role ?? null;
  }

  /** Whether rows could be read within the last 30 s. true before the first try, and while only the event log is unavailable. */
  readable(): boolean {
    if (this.#session === null && this.#between !== 'store_failed') return true;
    const isRecent = this.#deps.clock.monotonic() - this.#readAt <= READ_MS;
    return isRecent && this.#validated.value() !== null;
  }

  /** If rows were not compared with the log yet, they are soon: the store has not failed, however long it takes. */
  isOpening(): boolean {
    return this.#generation.isOpening;
  }

  /**
   * `checkpointsElsewhere` as soon as rows were compared with the log, which is before they are counted and `open` returns
   * them; null: not within 1 s.
   */
  compared(): Promise<readonly string[] | null> {
    return this.#compared.wait(LIMITS.answerWaitMs.max);
  }

  /** The damage of the log before which the rows stop; null: there is none. */
  stoppedAt(): Session['stoppedAt'] {
    return this.#session?.stoppedAt ?? null;
  }

  /** Position of the last event whose rows can be read; null: none, or not known yet. */
  position(): string | null {
    return this.#progress.position;
  }

  /** `lagEvents`: null if unknown. `lagMs`: 0 while the rows contain all that the log has delivered. */
  lag(): { readonly lagEvents: number | null; readonly lagMs: number } {
    const now = this.#deps.clock.monotonic();
    const queue = this.#session?.queue;
    if (!queue?.isComplete) return { lagEvents: null, lagMs: Math.round(now - this.#progress.caughtUpAt) };
    const lagMs = Math.round(now - (queue.oldestArrival ?? now));
    return { lagEvents: queue.isFull ? null : queue.size, lagMs };
  }

  /** true as soon as rows up to `position` can be read; false after `timeoutMs`, or at the end. Never throws. */
  caughtUp(position: string, timeoutMs: number): Promise<boolean> {
    return this.#progress.reached(position, timeoutMs);
  }

  /** Whether the rows contain the log's head as it was when they were opened; waits for it up to 1 s. Never throws. */
  ready(): Promise<boolean> {
    return this.#progress.ready(LIMITS.answerWaitMs.max);
  }

  /**
   * Whether the rows have reached the log's head as read at the call, waiting up to 1 s: only then is a missing row
   * missing. The events up to there are projected as soon as possible. false also if the log is unavailable, or if
   * rows were deleted. Never throws.
   */
  async reachedHead(): Promise<boolean> {
    const { log, logger } = this.#deps;
    try {
      const head = await log.head();
      if (head === null) return true;
      return (await this.caughtUp(head, LIMITS.answerWaitMs.max)) && (await this.#areRowsWhole());
    } catch (cause) {
      if (!(cause instanceof EventLogUnavailable))
        logger.bug('the head of the event log could not be read', { cause });
      return false;
    }
  }

  /** Notes of checkpoints in other generations of this log, those of a lost history among them; none if disposable. */
  checkpointsElsewhere(): readonly string[] {
    return this.#compared.value() ?? [];
  }

  /** Ends after the batch in flight, which an unresponsive database may keep: it is waited for 5 s at most. */
  async stop(): Promise<void> {
    this.#ending.abort();
    this.#session?.end();
    const ended = new Cancel();
    await Promise.race([this.#running, this.#deps.clock.sleep(STOP_MS, ended)]);
    ended.abort();
    this.#progress.end();
  }

  async #run(): Promise<void> {
    if (this.#after !== undefined) await unlessAborted(this.#after, this.#ending);
    this.#between = 'opening';
    while (!this.#ending.aborted) {
      try {
        await this.#project();
      } catch (error) {
        await this.#recover(error);
      }
    }
    this.#between = 'stopped';
  }

  /** Opens the rows and projects into them what the log has after their position, until something fails or changes. */
  async #project(): Promise<void> {
    const { log, logger } = this.#deps;
    const rows = await this.#generation.open();
    if (rows === null) return;
    const head = await log.head();
    if (this.#ending.aborted) return;
    const session = new Session(rows, {
      ...this.#deps,
      models: this.#models,
      batchSize: this.#batchSize,
      progress: this.#progress,
      purge: this.#purge,
      isCurrent: (current) => this.#generation.isCurrent(current),
      onDamage: (cause) => logger.error(STOPPED, { cause }),
      onWork: () => this.#worked(),
      onLook: () => this.#noteRead(),
    });
    this.#session = session;
    this.#between = 'opening';
    this.#validated.set(rows.schema);
    this.#noteRead();
    // Only then: who finds the position reached reads these rows.
    this.#progress.begin(rows.head.position, head);
    await session.run().finally(() => {
      this.#session = null;
    });
  }

  async #recover(error: unknown): Promise<void> {
    if (error instanceof RowsDoubted) this.#invalidate();
    if (error instanceof RowsMoved || (error instanceof RowsDoubted && error.cause === undefined)) return;
    const { clock, logger } = this.#deps;
    const isOfLog = error instanceof RowsDoubted || error instanceof EventLogUnavailable;
    this.#between = isOfLog ? 'log_failed' : 'store_failed';
    if (!isOfLog) this.#generation.countAgain();
    if (this.#failures++ === 0) {
      const message = 'events cannot be projected into the read models; the projector retries';
      if (isDefect(error)) logger.bug(message, { cause: error });
      else logger.warn(message, { cause: error });
    }
    await clock.sleep(Math.min(PAUSE_MS.last, PAUSE_MS.first * 2 ** (this.#failures - 1)), this.#ending);
  }

  /** A store that opens proves nothing yet: only work that was done ends the failures and their growing pauses. */
  #worked(): void {
    if (this.#failures > 0) this.#deps.logger.info('the read models are projected again');
    this.#failures = 0;
  }

  #noteRead(): void {
    this.#readAt = this.#deps.clock.monotonic();
  }

  /** No reader gets rows until they are compared with the log. */
  #invalidate(): void {
    this.#validated.clear();
    this.#progress.lost();
  }

  /** A row that was deleted is not missing, but lost. */
  async #areRowsWhole(): Promise<boolean> {
    const session = this.#session;
    if (session === null) return false;
    let isWhole = false;
    const looked = session.isWhole().then((whole) => {
      isWhole = whole;
    });
    await succeedsWithin(LIMITS.answerWaitMs.max, looked);
    return isWhole;
  }
}
