// The projector of a service: projects the event log into this release's generation of read models, in every process, and
// gives readers the handle of its rows once they are validated. It survives the absence of the store and of the log.
import { LIMITS } from '#src/domain/limits.ts';
import { isDefect } from '#src/lib/defect.ts';
import { type Latch, latch } from '#src/lib/latch.ts';
import { Cancel, succeedsWithin, unlessAborted } from '#src/lib/time.ts';
import { EventLogUnavailable } from '#src/ports/event-log.ts';
import { type GenerationDeps, LiveGeneration, RowsDoubted, RowsMoved } from './live-generation.ts';
import type { ReadModel } from './model.ts';
import { LONGEST_MS, Pauses } from './pauses.ts';
import { Progress } from './progress.ts';
import type { JudgeReceipt } from './projection.ts';
import { KEEP_ALL, makePurge, type RetentionMs } from './purge.ts';
import { unavailable } from './read-models.ts';
import { READ_MODELS } from './registry.ts';
import type { Db } from './rows.ts';
import { type Role, Session, type SessionDeps } from './session.ts';

export type ProjectorDeps = GenerationDeps & { readonly judgeReceipt: JudgeReceipt };

export type ProjectorOptions = {
  readonly models?: readonly ReadModel[];
  readonly batchSize?: number;
  /** How long rows are kept; without it, always. */
  readonly retentionMs?: RetentionMs;
  /** Nothing is opened or projected before it resolves; without it, the projector starts at once. */
  readonly after?: Promise<void>;
};

/** What a projector does while no session runs. */
type Between =
  /** Until `ProjectorOptions.after` resolves. */
  | 'waiting'
  /** The rows are opened, and compared with the log. */
  | 'opening'
  /** After a failure it pauses, and opens the rows again. */
  | 'log_failed'
  | 'store_failed'
  /** The same, but store and log answer. */
  | 'batch_failed'
  | 'stopped';

export type ProjectorState =
  | Role
  | Between
  /** Rows that were read before are gone, and those that replace them have not caught up. */
  | 'rebuilding'
  /** The rows stop before a damaged event. */
  | 'damaged';

const BATCH_SIZE = 500;
const STOP_MS = 5000;
/** Rows that were read within this time are readable. */
const READ_MS = 30_000;
const STOPPED =
  'the read models stop before damage in the event log: later events are not shown; put back a backup and restart';

export class Projector {
  readonly #deps: ProjectorDeps;
  readonly #generation: LiveGeneration;
  readonly #progress: Progress;
  readonly #pauses = new Pauses();
  readonly #ofSession: SessionDeps;
  /** Notes of checkpoints in other generations of this log, since rows were compared with it. */
  readonly #compared: Latch<readonly string[]>;
  /** The schema of rows that were compared with the log and counted. */
  readonly #validated: Latch<string>;
  readonly #ending = new Cancel();
  readonly #running: Promise<void>;
  #session: Session | null = null;
  #between: Between = 'waiting';
  /** Monotonic ms at which every table was read last. */
  #readAt = Number.NEGATIVE_INFINITY;

  constructor(deps: ProjectorDeps, options: ProjectorOptions = {}) {
    const { models = READ_MODELS, batchSize = BATCH_SIZE, retentionMs = KEEP_ALL, after } = options;
    this.#deps = deps;
    this.#progress = new Progress(deps, () => this.#session?.ring());
    this.#compared = latch(deps.clock);
    this.#validated = latch(deps.clock);
    this.#generation = new LiveGeneration(deps, models, {
      ending: this.#ending,
      onDoubt: () => this.#invalidate(),
      beforeBuild: () => this.#pause(this.#pauses.beforeBuild()),
      onCompared: (elsewhere) => this.#compared.set(elsewhere),
      onEmptyLog: () => this.#progress.begin(null, null),
    });
    this.#ofSession = {
      ...deps,
      models,
      batchSize,
      until: null,
      progress: this.#progress,
      purge: makePurge(deps, retentionMs),
      isCurrent: (rows) => this.#generation.isCurrent(rows),
      onDamage: (cause) => deps.logger.error(STOPPED, { cause }),
      onBatch: () => this.#endFailures(false),
      onLook: ({ isComplete, size }) => {
        this.#noteRead();
        this.#endFailures(isComplete && size === 0);
      },
    };
    this.#running = this.#run(after);
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

  /** Whether rows could be read within the last 30 s. true before the first try, and while the store has not failed. */
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
      if (!(await this.caughtUp(head, LIMITS.answerWaitMs.max)) || this.#session === null) return false;
      // A row that was deleted is not missing, but lost.
      return await succeedsWithin(LIMITS.answerWaitMs.max, this.#session.demandWhole());
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

  async #run(after: Promise<void> | undefined): Promise<void> {
    if (after !== undefined) await unlessAborted(after, this.#ending);
    this.#between = 'opening';
    while (!this.#ending.aborted) {
      try {
        await this.#project();
      } catch (error) {
        await this.#recover(error);
      }
    }
    this.#session = null;
    this.#between = 'stopped';
  }

  /** Opens the rows and projects into them what the log has after their position, until something fails or changes. */
  async #project(): Promise<void> {
    const rows = await this.#generation.open();
    if (rows === null) return;
    const head = await this.#deps.log.head();
    if (this.#ending.aborted) return;
    const session = new Session(rows, this.#ofSession);
    this.#session = session;
    this.#validated.set(rows.schema);
    this.#noteRead();
    // Only then: who finds the position reached reads these rows.
    this.#progress.begin(rows.head.position, head);
    await session.run();
  }

  async #recover(error: unknown): Promise<void> {
    const { clock, logger } = this.#deps;
    const session = this.#session;
    this.#session = null;
    if (session !== null) this.#pauses.ended(this.#progress.position, clock.monotonic() - session.begunAt);
    if (error instanceof RowsDoubted) this.#invalidate();
    this.#between = stateAfter(error, session);
    if (this.#between === 'opening') return;
    if (this.#between !== 'log_failed') this.#generation.countAgain();
    if (!this.#pauses.areGrowing) {
      const message = 'events cannot be projected into the read models; the projector retries';
      if (isDefect(error)) logger.bug(message, { cause: error });
      else logger.warn(message, { cause: error });
    }
    const longest = this.#between === 'batch_failed' ? LONGEST_MS.defect : LONGEST_MS.unavailable;
    await this.#pause(this.#pauses.afterFailure(longest));
  }

  async #pause(ms: number): Promise<void> {
    if (ms > 0) await this.#deps.clock.sleep(ms, this.#ending);
  }

  /** `isAll`: the rows contain all that the log has delivered. */
  #endFailures(isAll: boolean): void {
    if (this.#pauses.worked(this.#progress.position, isAll))
      this.#deps.logger.info('the read models are projected again');
  }

  #noteRead(): void {
    this.#readAt = this.#deps.clock.monotonic();
  }

  /** No reader gets rows until they are compared with the log. */
  #invalidate(): void {
    this.#validated.clear();
    this.#progress.lost();
  }
}

/** `session`: what failed; null: the rows could not be opened. */
function stateAfter(error: unknown, session: Session | null): Between {
  if (error instanceof RowsMoved) return 'opening';
  if (error instanceof RowsDoubted) return error.cause === undefined ? 'opening' : 'log_failed';
  if (error instanceof EventLogUnavailable) return 'log_failed';
  return session === null ? 'store_failed' : 'batch_failed';
}
