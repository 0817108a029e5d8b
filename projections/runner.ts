// The runner: projects the event log into this release's generation of read models, in every process, and gives readers
// the handle of its rows once they are validated. It survives the absence of the store and of the log.
import { LIMITS } from '#src/domain/limits.ts';
import { isDefect } from '#src/lib/defect.ts';
import { latch } from '#src/lib/latch.ts';
import { unlessAborted } from '#src/lib/time.ts';
import { EventLogUnavailable } from '#src/ports/event-log.ts';
import {
  checkpointsElsewhere,
  createGeneration,
  currentSchema,
  type Generation,
  generationOf,
  logHolds,
  markUsed,
  pruneGenerations,
  retireLost,
} from './generations.ts';
import { pendingEvents } from './pending.ts';
import { makeProgress, type Progress } from './progress.ts';
import { type ProjectionHead, Projector, readHead } from './projection.ts';
import { KEEP_ALL, makePurge, type RetentionMs } from './purge.ts';
import { unavailable } from './read-models.ts';
import { READ_MODELS, type ReadModel } from './registry.ts';
import type { Db } from './rows.ts';
import {
  HistoryDoubted,
  lingerAfter,
  projectAll,
  type Role,
  RowsMoved,
  type RunnerDeps,
  type Session,
} from './session.ts';

export type RunnerOptions = {
  readonly models?: readonly ReadModel[];
  /** Events in one transaction at most: it blocks the event loop of an embedded store for its length. */
  readonly batchSize?: number;
  /** How long rows are kept; without it, always. */
  readonly retentionMs?: RetentionMs;
  /** Nothing is opened or projected before it resolves; without it, the runner starts at once. */
  readonly after?: Promise<void>;
};

export type ProjectionRunner = {
  /**
   * The handle that queries run on: of this release's generation, validated against the log. Throws
   * `Fault('read_models_unavailable')` if there is none within 1 s, and what the store throws if that is unavailable. The
   * handle changes after lost connections, so request it each time.
   */
  open(): Promise<Db>;
  position: Progress['position'];
  /** Never throws. */
  caughtUp: Progress['reached'];
  /**
   * Whether the rows have reached the log's head as read at the call, waiting up to 1 s: only then is a missing row
   * missing. The events up to there are projected as soon as possible. false also if the log is unavailable. Never throws.
   */
  reachedHead(): Promise<boolean>;
  /** `Progress.ready`, within a second. */
  ready(): Promise<boolean>;
  /** `lagEvents`: null if unknown. `lagMs`: 0 while the rows contain all that the log has delivered. */
  lag(): { readonly lagEvents: number | null; readonly lagMs: number };
  /**
   * Whether the store provides rows: false from its first failure until a generation is validated. true while the first
   * one is opened, and while only the event log is unavailable.
   */
  readable(): boolean;
  /** What this process does for the rows; null: it cannot reach them now. */
  role(): Role | null;
  /** Notes of checkpoints in other generations of this log, those of a lost history among them; none if disposable. */
  checkpointsElsewhere(): readonly string[];
  /** Ends after the batch in flight, which an unresponsive database may keep: it is waited for 5 s at most. */
  stop(): Promise<void>;
};

const BATCH_SIZE = 500;
const STOP_MS = 5000;
const BACKOFF_MS = { first: 100, last: 1000 };
/** A new log gets its first event within moments: the service records its signing keys as it starts. */
const EMPTY_LOG_MS = 50;
/** A history counts as lost only if the log still lacks the event after this. */
const LOST_AFTER_MS = 500;

export function startProjections(deps: RunnerDeps, options: RunnerOptions = {}): ProjectionRunner {
  const { clock, logger, log, store } = deps;
  const { models = READ_MODELS, batchSize = BATCH_SIZE, retentionMs = KEEP_ALL, after } = options;
  const state = {
    session: null as Session | null,
    failures: 0,
    /** The store's own failure was the last one. */
    storeFailed: false,
    elsewhere: [] as readonly string[],
  };
  /** The schema of the generation that was compared with the log. */
  const validated = latch<string>(clock);
  const progress = makeProgress(deps, () => state.session?.pending.wake());
  const purge = makePurge(deps, retentionMs);
  const ending = new AbortController();
  const running = run();
  return {
    async open() {
      const schema = await validated.wait(LIMITS.answerWaitMs.max);
      if (schema === null) throw unavailable(new Error('no generation of the read models is validated'));
      return store.open(schema);
    },
    position: progress.position,
    caughtUp: progress.reached,
    async reachedHead() {
      try {
        const head = await log.head();
        return head === null || (await progress.reached(head, LIMITS.answerWaitMs.max));
      } catch (cause) {
        if (!(cause instanceof EventLogUnavailable))
          logger.bug('the head of the event log could not be read', { cause });
        return false;
      }
    },
    ready: () => progress.ready(LIMITS.answerWaitMs.max),
    lag: () => lagOf(state.session, progress.caughtUpAt(), clock.monotonic()),
    readable: () => validated.value() !== null || !state.storeFailed,
    role: () => state.session?.role ?? null,
    checkpointsElsewhere: () => state.elsewhere,
    async stop() {
      ending.abort();
      const ended = new AbortController();
      await Promise.race([running, clock.sleep(STOP_MS, ended.signal)]);
      ended.abort();
      progress.end();
    },
  };

  async function run(): Promise<void> {
    if (after !== undefined) await unlessAborted(after, ending.signal);
    while (!ending.signal.aborted) {
      try {
        await runSession();
      } catch (error) {
        if (error instanceof HistoryDoubted) invalidate();
        if (error instanceof HistoryDoubted || error instanceof RowsMoved) continue;
        state.storeFailed = !(error instanceof EventLogUnavailable);
        if (state.failures++ === 0) reportFailure(error);
        const wait = Math.min(BACKOFF_MS.last, BACKOFF_MS.first * 2 ** (state.failures - 1));
        await clock.sleep(wait, ending.signal);
      }
    }
  }

  function reportFailure(cause: unknown): void {
    const message = 'events cannot be projected into the read models; the runner retries';
    if (isDefect(cause)) logger.bug(message, { cause });
    else logger.warn(message, { cause });
  }

  /** No reader gets rows until a session has compared them with the log. */
  function invalidate(): void {
    validated.clear();
    progress.lost();
  }

  /** A store that opens proves nothing yet: only work that was done ends the failures and their growing pauses. */
  function worked(): void {
    if (state.failures > 0) logger.info('the read models are projected again');
    state.failures = 0;
  }

  /** A validated generation and a subscription from its position on, until one of them fails. */
  async function runSession(): Promise<void> {
    const first = await firstEvent();
    if (first === null) return;
    const generation = generationOf(first, store.layout.version, models);
    const found = await validGeneration(generation);
    if (found === null) return;
    const { schema, db, head } = found;
    const logHead = await log.head();
    const subscription = new AbortController();
    const end = () => subscription.abort();
    ending.signal.addEventListener('abort', end, { once: true });
    try {
      const from = { after: head.position, capacity: 4 * batchSize, signal: subscription.signal };
      const pending = pendingEvents(deps, from);
      const projector = new Projector(head, { models });
      const now = clock.monotonic();
      const kept = { usedAt: now, comparedAt: now };
      state.session = {
        generation,
        schema,
        db,
        pending,
        projector,
        nearHead: false,
        role: 'projects',
        kept,
        lingerMs: lingerAfter(0),
        restUntil: now,
      };
      validated.set(schema);
      state.storeFailed = false;
      // Only then: who finds the position reached reads these rows.
      progress.begin(head.position, logHead);
      const parts = { progress, purge, worked, batchSize, signal: ending.signal };
      await projectAll(state.session, { ...deps, ...parts });
    } finally {
      state.session = null;
      ending.signal.removeEventListener('abort', end);
      end();
    }
  }

  /** null: the log is empty, and the rows of nothing need no generation. */
  async function firstEvent(): Promise<string | null> {
    const [first] = await log.readAll({ after: null, max: 1 });
    if (first !== undefined) return first.id;
    progress.begin(null, null);
    progress.noteCaughtUp();
    await clock.sleep(EMPTY_LOG_MS, ending.signal);
    return null;
  }

  /** The generation's rows, compared with the log; null: they were of another history and are out of use now. */
  async function validGeneration(
    generation: Generation,
  ): Promise<{ readonly schema: string; readonly db: Db; readonly head: ProjectionHead } | null> {
    const shared = await store.shared();
    const { statements } = store.layout;
    const schema =
      (await currentSchema(shared, generation)) ??
      (await shared.transaction((tx) => createGeneration(tx, generation, { statements, models }, 'current')));
    const db = await store.open(schema);
    const head = await readHead(db);
    if (!(await logHolds(log, head))) {
      // Another process may serve an older state of the log for a moment: what is missing must stay missing.
      invalidate();
      await clock.sleep(LOST_AFTER_MS, ending.signal);
      if (ending.signal.aborted || (await logHolds(log, head))) return null;
      logger.warn('the read models contain events that are missing from the event log: building new ones', {
        position: head.position,
      });
      await shared.transaction((tx) => retireLost(tx, schema));
      return null;
    }
    await markUsed(shared, schema);
    // Embedded rows are no evidence: a start may delete them, and the operator decides by the file beside the event log.
    if (store.disposable) await shared.transaction((tx) => pruneGenerations(tx, schema, 0));
    else state.elsewhere = await checkpointsElsewhere(shared, generation, schema);
    return { schema, db, head };
  }
}

function lagOf(
  session: Session | null,
  caughtUpAt: number,
  now: number,
): ReturnType<ProjectionRunner['lag']> {
  if (session === null || !session.pending.complete) {
    return { lagEvents: null, lagMs: Math.round(now - caughtUpAt) };
  }
  const { pending } = session;
  const oldest = pending.oldestArrival();
  return {
    lagEvents: pending.full ? null : pending.size,
    lagMs: oldest === null ? 0 : Math.round(now - oldest),
  };
}
