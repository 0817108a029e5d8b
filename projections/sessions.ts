// The sessions of a projector, one after another: opens the rows of this release's generation, projects into them until
// something fails, pauses, and opens them again. Survives the absence of the store and of the log.
import { isDefect } from '#src/lib/defect.ts';
import { type Latch, latch } from '#src/lib/latch.ts';
import { Cancel, unlessAborted } from '#src/lib/time.ts';
import { EventLogUnavailable, EventOfNewerRelease } from '#src/ports/event-log.ts';
import { repeated } from '#src/usecases/process/worker.ts';
import type { Barrier } from './event-queue.ts';
import { type GenerationDeps, LiveGeneration, RowsDoubted, RowsMoved } from './live-generation.ts';
import type { ReadModel } from './model.ts';
import { isBefore, Progress } from './progress.ts';
import type { JudgeReceipt } from './projection.ts';
import { KEEP_ALL, makePurge, type RetentionMs } from './purge.ts';
import { READ_MODELS } from './registry.ts';
import { Session, type SessionDeps } from './session.ts';

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
export type Between =
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

const BATCH_SIZE = 500;

export class Sessions {
  /** null: none runs, and `between` says why. */
  current: Session | null = null;
  between: Between = 'waiting';
  /** Monotonic ms at which every table was read last. */
  readAt = Number.NEGATIVE_INFINITY;
  readonly progress: Progress;
  readonly generation: LiveGeneration;
  /** Notes of checkpoints in other generations of this log, since rows were compared with it. */
  readonly compared: Latch<readonly string[]>;
  /** The schema of rows that were compared with the log and counted. */
  readonly validated: Latch<string>;
  readonly #deps: ProjectorDeps;
  readonly #pauses = new Pauses();
  readonly #ofSession: SessionDeps;
  readonly #ending = new Cancel();
  /** Monotonic ms. */
  #begunAt = 0;

  constructor(deps: ProjectorDeps, options: ProjectorOptions) {
    const { models = READ_MODELS, batchSize = BATCH_SIZE, retentionMs = KEEP_ALL } = options;
    this.#deps = deps;
    this.progress = new Progress(deps, () => this.current?.ring());
    this.compared = latch(deps.clock);
    this.validated = latch(deps.clock);
    this.generation = new LiveGeneration(deps, models, {
      ending: this.#ending,
      onDoubt: () => this.#invalidate(),
      beforeBuild: () => this.#pause(this.#pauses.beforeBuild()),
      onCompared: (elsewhere) => this.compared.set(elsewhere),
      onEmptyLog: () => this.progress.begin(null, null),
    });
    this.#ofSession = {
      ...deps,
      models,
      batchSize,
      until: null,
      progress: this.progress,
      purge: makePurge(deps, retentionMs),
      isCurrent: (rows) => this.generation.isCurrent(rows),
      onBarrier: (cause) => deps.logger.error(stoppedBy(cause), { cause }),
      onBatch: () => this.#endFailures(false),
      onCheck: ({ isComplete, size }, readAt) => {
        this.readAt = readAt;
        this.#endFailures(isComplete && size === 0);
      },
    };
  }

  /** Until `end`; begins when `after` resolves. */
  async run(after: Promise<void> | undefined): Promise<void> {
    if (after !== undefined) await unlessAborted(after, this.#ending);
    this.between = 'opening';
    let pauseMs = 0;
    const { clock, logger } = this.#deps;
    const deps = { clock, logger, stopping: this.#ending };
    await repeated(deps, {
      pauseMs: () => pauseMs,
      run: async () => {
        pauseMs = await this.#project().catch((error) => this.#pauseAfter(error));
      },
      failed: { message: 'the projector failed' },
    }).run();
    this.current = null;
    this.between = 'stopped';
  }

  end(): void {
    this.#ending.abort();
    this.current?.end();
  }

  /** Opens the rows and projects into them what the log has after their position, until something fails or changes. Returns 0: the pause. */
  async #project(): Promise<number> {
    const rows = await this.generation.open();
    if (rows === null) return 0;
    const head = await this.#deps.log.head();
    if (this.#ending.aborted) return 0;
    const session = new Session(rows, this.#ofSession);
    this.#begunAt = this.#deps.clock.monotonic();
    this.current = session;
    this.validated.set(rows.schema);
    this.readAt = this.#begunAt;
    // Only then: who finds the position reached reads these rows.
    this.progress.begin(rows.head.position, head);
    await session.run();
    return 0;
  }

  /** ms until the rows are opened again. */
  #pauseAfter(error: unknown): number {
    const { clock, logger } = this.#deps;
    const session = this.current;
    this.current = null;
    if (session !== null) this.#pauses.ended(this.progress.position, clock.monotonic() - this.#begunAt);
    if (error instanceof RowsDoubted) this.#invalidate();
    this.between = stateAfter(error, session);
    if (this.between === 'opening') return 0;
    if (this.between !== 'log_failed') this.generation.countAgain();
    if (isDefect(error) && !this.#pauses.areGrowing) logger.bug('the projector failed', { cause: error });
    logger.condition('projector', 'failing', {}, error);
    const longest = this.between === 'batch_failed' ? LONGEST_MS.defect : LONGEST_MS.unavailable;
    return this.#pauses.afterFailure(longest);
  }

  async #pause(ms: number): Promise<void> {
    if (ms > 0) await this.#deps.clock.sleep(ms, this.#ending);
  }

  /** `isAll`: the rows contain all that the log has delivered. */
  #endFailures(isAll: boolean): void {
    if (this.#pauses.worked(this.progress.position, isAll)) this.#deps.logger.condition('projector', null);
  }

  /** No reader gets rows until they are compared with the log. */
  #invalidate(): void {
    this.validated.clear();
    this.progress.lost();
  }
}

const stoppedBy = (barrier: Barrier): string =>
  barrier instanceof EventOfNewerRelease
    ? 'the read models stop before an event of a newer release: later events are not shown; start that release'
    : 'the read models stop before damage in the event log: later events are not shown; put back a backup and restart';

/** `session`: what failed; null: the rows could not be opened. */
function stateAfter(error: unknown, session: Session | null): Between {
  if (error instanceof RowsMoved) return 'opening';
  if (error instanceof RowsDoubted) return error.cause === undefined ? 'opening' : 'log_failed';
  if (error instanceof EventLogUnavailable) return 'log_failed';
  return session === null ? 'store_failed' : 'batch_failed';
}

// ── pauses ──────────────────────────────────────────────────────────────────────────────────────────────

const FIRST_MS = 100;
/** At most: while the store or the log is unavailable, and while both answer, so that only a defect is left as the cause. */
const LONGEST_MS = { unavailable: 1000, defect: 60_000 };
/** Rows that are lost again and again take a fifth of the time. */
const REST = 4;

/**
 * How long a projector rests after a failure, and before it builds rows again that were lost: longer each time, until the
 * rows are past the position at which they failed. What passes a failure by, and comes to it again, is no progress.
 */
class Pauses {
  #pauseMs = 0;
  /** The last position at which rows failed or were lost. */
  #failedAt: string | null = null;
  /** How often rows were built since they were past that, and how long sessions have projected into the last ones. */
  #builds = 0;
  #builtMs = 0;

  /** true after the first failure. */
  get areGrowing(): boolean {
    return this.#pauseMs > 0;
  }

  /** A session has ended after `tookMs`, with its rows at `position`. */
  ended(position: string | null, tookMs: number): void {
    if (isBefore(this.#failedAt, position)) this.#failedAt = position;
    this.#builtMs += tookMs;
  }

  /** ms to the next try. */
  afterFailure(longestMs: number): number {
    this.#pauseMs = Math.min(longestMs, Math.max(FIRST_MS, 2 * this.#pauseMs));
    return this.#pauseMs;
  }

  /** ms until rows are built from the first event. Rows that are lost for the first time are built at once. */
  beforeBuild(): number {
    const isRepeated = this.#builds++ > 0;
    const restMs = isRepeated ? Math.max(REST * this.#builtMs, this.afterFailure(LONGEST_MS.defect)) : 0;
    this.#builtMs = 0;
    return restMs;
  }

  /** Rows are at `position`; `isAll`: nothing is left to fail at. Returns whether failures are over. */
  worked(position: string | null, isAll: boolean): boolean {
    if (!isAll && !isBefore(this.#failedAt, position)) return false;
    const wereGrowing = this.areGrowing;
    this.#pauseMs = 0;
    this.#builds = 0;
    return wereGrowing;
  }
}
