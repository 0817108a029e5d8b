// The projector of a service, in every process: projects the event log into this release's generation of read models, and
// gives readers the handle of its rows once they are validated.
import { LIMITS } from '#src/domain/limits.ts';
import { Cancel, succeedsByClock } from '#src/lib/time.ts';
import { EventLogUnavailable } from '#src/ports/event-log.ts';
import type { Barrier } from './event-queue.ts';
import type { Progress } from './progress.ts';
import { readModelsUnavailable } from './read-models.ts';
import type { Db } from './rows.ts';
import type { Role } from './session-timing.ts';
import { type Between, type ProjectorDeps, type ProjectorOptions, Sessions } from './sessions.ts';

export type ProjectorState =
  | Role
  | Between
  /** Rows that were read before are gone, and those that replace them have not caught up. */
  | 'rebuilding'
  /** The rows stop before a damaged event, or one of a newer release. */
  | 'stopped_before';

const STOP_MS = 5000;
/** Rows that were read within this time are readable. */
const READ_MS = 30_000;

export class Projector {
  readonly #deps: ProjectorDeps;
  readonly #sessions: Sessions;
  readonly progress: Progress;
  readonly #running: Promise<void>;

  constructor(deps: ProjectorDeps, options: ProjectorOptions = {}) {
    this.#deps = deps;
    this.#sessions = new Sessions(deps, options);
    this.progress = this.#sessions.progress;
    this.#running = this.#sessions.run(options.after);
  }

  /**
   * The handle that queries run on: of this release's generation, validated against the log. Throws
   * `Fault('read_models_unavailable')` if there is none within 1 s, and what the store throws if that is unavailable. The
   * handle changes after lost connections, so request it each time.
   */
  async open(): Promise<Db> {
    this.#sessions.current?.read();
    const schema = await this.#sessions.validated.wait(LIMITS.answerWaitMs.max);
    if (schema === null)
      throw readModelsUnavailable(new Error('no generation of the read models is validated'));
    return this.#deps.store.open(schema);
  }

  get state(): ProjectorState {
    if (this.progress.isTakenBack && this.#sessions.between !== 'store_failed') return 'rebuilding';
    if (this.stoppedAt() !== null) return 'stopped_before';
    return this.#sessions.current?.role ?? this.#sessions.between;
  }

  /** What this process does for the rows; null: it cannot reach them now. */
  role(): Role | null {
    return this.#sessions.current?.role ?? null;
  }

  /** Whether rows could be read within the last 30 s. true before the first try, and while the store has not failed. */
  readable(): boolean {
    this.#sessions.current?.read();
    if (this.#sessions.current === null && this.#sessions.between !== 'store_failed') return true;
    const isRecent = this.#deps.clock.monotonic() - this.#sessions.readAt <= READ_MS;
    return isRecent && this.#sessions.validated.value() !== null;
  }

  /** If rows were not compared with the log yet, they are soon: the store has not failed, however long it takes. */
  isOpening(): boolean {
    return this.#sessions.generation.isOpening;
  }

  /** `checkpointsElsewhere` as soon as rows were compared with the log, before they are counted; null: not within 1 s. */
  compared(): Promise<readonly string[] | null> {
    return this.#sessions.compared.wait(LIMITS.answerWaitMs.max);
  }

  /** Damage of the log, or an event of a newer release, before which the rows stop; null: there is none. */
  stoppedAt(): Barrier | null {
    return this.#sessions.current?.queue.stoppedAt ?? null;
  }

  /** Position of the last event whose rows can be read; null: none, or not known yet. */
  position(): string | null {
    return this.progress.position;
  }

  /** `lagEvents`: null if unknown. `lagMs`: 0 while the rows contain all that the log has delivered. */
  lag(): { readonly lagEvents: number | null; readonly lagMs: number } {
    const now = this.#deps.clock.monotonic();
    const queue = this.#sessions.current?.queue;
    if (!queue?.isComplete) return { lagEvents: null, lagMs: Math.round(now - this.progress.caughtUpAt) };
    const lagEvents = queue.isFull ? null : queue.size;
    return { lagEvents, lagMs: Math.round(now - (queue.oldestArrival ?? now)) };
  }

  /** true as soon as rows up to `position` can be read; false after `timeoutMs`, or at the end. Never throws. */
  caughtUp(position: string, timeoutMs: number): Promise<boolean> {
    return this.progress.reached(position, timeoutMs);
  }

  /** Whether the rows contain the log's head as it was when they were opened; waits for it up to 1 s. Never throws. */
  ready(): Promise<boolean> {
    return this.progress.ready(LIMITS.answerWaitMs.max);
  }

  /**
   * Whether the rows have reached the log's head as read at the call, waiting up to 1 s: only then is a missing row
   * missing. The events up to there are projected as soon as possible. false also if the log is unavailable, or if
   * rows were deleted. Never throws.
   */
  async reachedHead(): Promise<boolean> {
    const { log, clock, logger } = this.#deps;
    try {
      const head = await log.head();
      if (head === null) return true;
      if (!(await this.caughtUp(head, LIMITS.answerWaitMs.max)) || this.#sessions.current === null)
        return false;
      // A row that was deleted is not missing, but lost.
      return await succeedsByClock(clock, LIMITS.answerWaitMs.max, this.#sessions.current.demandWhole());
    } catch (cause) {
      if (!(cause instanceof EventLogUnavailable))
        logger.bug('the head of the event log could not be read', { cause });
      return false;
    }
  }

  /** Notes of checkpoints in other generations of this log, those of a lost history among them; none if disposable. */
  checkpointsElsewhere(): readonly string[] {
    return this.#sessions.compared.value() ?? [];
  }

  /** Ends after the batch in flight, which an unresponsive database may keep: it is waited for 5 s at most. */
  async stop(): Promise<void> {
    this.#sessions.end();
    const ended = new Cancel();
    await Promise.race([this.#running, this.#deps.clock.sleep(STOP_MS, ended)]);
    ended.abort();
    this.progress.end();
  }
}
