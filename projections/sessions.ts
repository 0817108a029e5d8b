// The sessions of a projector, one after another: opens the rows of this release's generation, projects into them until
// something fails, pauses, and opens them again. Survives the absence of the store and of the log.
import { isDefect } from '#src/lib/defect.ts';
import { type Latch, latch } from '#src/lib/latch.ts';
import { Cancel, unlessAborted } from '#src/lib/time.ts';
import { EventLogUnavailable } from '#src/ports/event-log.ts';
import { type GenerationDeps, LiveGeneration, RowsDoubted, RowsMoved } from './live-generation.ts';
import type { ReadModel } from './model.ts';
import { LONGEST_MS, Pauses } from './pauses.ts';
import { Progress } from './progress.ts';
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
const STOPPED =
  'the read models stop before damage in the event log: later events are not shown; put back a backup and restart';

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
      onDamage: (cause) => deps.logger.error(STOPPED, { cause }),
      onBatch: () => this.#endFailures(false),
      onCheck: ({ isComplete, size }) => {
        this.readAt = deps.clock.monotonic();
        this.#endFailures(isComplete && size === 0);
      },
    };
  }

  /** Until `end`; begins when `after` resolves. */
  async run(after: Promise<void> | undefined): Promise<void> {
    if (after !== undefined) await unlessAborted(after, this.#ending);
    this.between = 'opening';
    while (!this.#ending.aborted) {
      try {
        await this.#project();
      } catch (error) {
        await this.#recover(error);
      }
    }
    this.current = null;
    this.between = 'stopped';
  }

  end(): void {
    this.#ending.abort();
    this.current?.end();
  }

  /** Opens the rows and projects into them what the log has after their position, until something fails or changes. */
  async #project(): Promise<void> {
    const rows = await this.generation.open();
    if (rows === null) return;
    const head = await this.#deps.log.head();
    if (this.#ending.aborted) return;
    const session = new Session(rows, this.#ofSession);
    this.#begunAt = this.#deps.clock.monotonic();
    this.current = session;
    this.validated.set(rows.schema);
    this.readAt = this.#begunAt;
    // Only then: who finds the position reached reads these rows.
    this.progress.begin(rows.head.position, head);
    await session.run();
  }

  async #recover(error: unknown): Promise<void> {
    const { clock, logger } = this.#deps;
    const session = this.current;
    this.current = null;
    if (session !== null) this.#pauses.ended(this.progress.position, clock.monotonic() - this.#begunAt);
    if (error instanceof RowsDoubted) this.#invalidate();
    this.between = stateAfter(error, session);
    if (this.between === 'opening') return;
    if (this.between !== 'log_failed') this.generation.countAgain();
    if (!this.#pauses.areGrowing) {
      const message = 'events cannot be projected into the read models; the projector retries';
      if (isDefect(error)) logger.bug(message, { cause: error });
      else logger.warn(message, { cause: error });
    }
    const longest = this.between === 'batch_failed' ? LONGEST_MS.defect : LONGEST_MS.unavailable;
    await this.#pause(this.#pauses.afterFailure(longest));
  }

  async #pause(ms: number): Promise<void> {
    if (ms > 0) await this.#deps.clock.sleep(ms, this.#ending);
  }

  /** `isAll`: the rows contain all that the log has delivered. */
  #endFailures(isAll: boolean): void {
    if (this.#pauses.worked(this.progress.position, isAll))
      this.#deps.logger.info('the read models are projected again');
  }

  /** No reader gets rows until they are compared with the log. */
  #invalidate(): void {
    this.validated.clear();
    this.progress.lost();
  }
}

/** `session`: what failed; null: the rows could not be opened. */
function stateAfter(error: unknown, session: Session | null): Between {
  if (error instanceof RowsMoved) return 'opening';
  if (error instanceof RowsDoubted) return error.cause === undefined ? 'opening' : 'log_failed';
  if (error instanceof EventLogUnavailable) return 'log_failed';
  return session === null ? 'store_failed' : 'batch_failed';
}
