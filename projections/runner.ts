// The runner: checkpoint → events → project → write, batch after batch, in every process. One projects at a time; the
// others follow the checkpoint and take over when it stands still. It outlives the absence of the store and of the log.

import { LIMITS } from '#src/domain/limits.ts';
import type { Clock } from '#src/ports/clock.ts';
import type { AbortSignalLike, EventLog } from '#src/ports/event-log.ts';
import type { Logger } from '#src/ports/logger.ts';
import type { ReadStore } from '#src/ports/read-store.ts';
import { type JudgeReceipt, judgeEvents, type Projector, projectBatch } from './batch.ts';
import { type Checkpoint, clearRows, readCheckpoint } from './checkpoint.ts';
import { type PendingEvents, pendingEvents } from './pending.ts';
import { makeProgress, type Progress } from './progress.ts';
import { READ_MODELS, type ReadModel } from './registry.ts';
import { type Db, tableShapes } from './rows.ts';

export type RunnerDeps = {
  readonly log: Pick<EventLog, 'subscribeAll' | 'readAll' | 'head'>;
  readonly store: Pick<ReadStore<Db>, 'open' | 'disposable'>;
  readonly judgeReceipt: JudgeReceipt;
  readonly clock: Clock;
  readonly logger: Logger;
};

export type RunnerOptions = {
  readonly models?: readonly ReadModel[];
  /** Events in one transaction at most: it blocks the event loop of an embedded store for its length. */
  readonly batchSize?: number;
};

export type ProjectionRunner = {
  /** Position of the last event whose rows can be read; null: none, or not known yet. */
  position(): string | null;
  /** Whether the rows have reached `position`; waits for it up to `timeoutMs`. Never throws. */
  caughtUp(position: string, timeoutMs: number): Promise<boolean>;
  /**
   * Whether the rows have reached the log's head as it is now, waiting up to a second: only then does a miss mean
   * that there is no such thing. false also where the log cannot be asked. Never throws.
   */
  reachedHead(): Promise<boolean>;
  /** `lagEvents`: null where it cannot be known. `lagMs`: 0 while the rows have all that the log delivered. */
  lag(): { readonly lagEvents: number | null; readonly lagMs: number };
  /** Ends after the batch in hand. */
  stop(): Promise<void>;
};

const BATCH_SIZE = 200;
/** How often a follower with events at hand looks at the checkpoint. */
const FOLLOW_MS = 10;
/** A checkpoint that stands still this long, with events to project, has lost its projector. */
const TAKE_OVER_MS = 100;
const BACKOFF_MS = { first: 100, last: 1000 };

type Session = {
  readonly pending: PendingEvents;
  readonly projector: Projector;
  checkpoint: Checkpoint | null;
};

/** Starts at once. */
export function startProjections(deps: RunnerDeps, options: RunnerOptions = {}): ProjectionRunner {
  const { clock, logger, log } = deps;
  const { models = READ_MODELS, batchSize = BATCH_SIZE } = options;
  const progress = makeProgress(clock);
  const ending = new AbortController();
  const state: { session: Session | null } = { session: null };
  const running = run();
  return {
    position: progress.position,
    caughtUp: progress.reached,
    async reachedHead() {
      try {
        const head = await log.head();
        return head === null || (await progress.reached(head, LIMITS.caughtUpWaitMs));
      } catch {
        return false;
      }
    },
    lag: () => lagOf(state.session, progress.caughtUpAt(), clock.monotonic()),
    async stop() {
      ending.abort();
      await running;
      progress.end();
    },
  };

  async function run(): Promise<void> {
    let failures = 0;
    while (!ending.signal.aborted) {
      try {
        await inSession(async (session) => {
          if (failures > 0) logger.info('the read models are followed again');
          failures = 0;
          await projectAll(session);
        });
      } catch (error) {
        if (error instanceof CheckpointMoved) continue;
        if (failures++ === 0) logger.warn('the read models stand still', { cause: error });
        const wait = Math.min(BACKOFF_MS.last, BACKOFF_MS.first * 2 ** (failures - 1));
        await clock.sleep(wait, ending.signal);
      }
    }
  }

  /** A store that answers, a checkpoint of this log, and a subscription from there on, until one of them fails. */
  async function inSession(work: (session: Session) => Promise<void>): Promise<void> {
    const db: Db = await deps.store.open();
    const projector = { db, models, shapes: tableShapes(models) };
    const checkpoint = await checkpointOfThisLog(deps, projector);
    progress.set(checkpoint?.position ?? null);
    const subscription = new AbortController();
    const end = () => subscription.abort();
    ending.signal.addEventListener('abort', end, { once: true });
    const start = {
      after: checkpoint?.position ?? null,
      capacity: 4 * batchSize,
      signal: subscription.signal,
    };
    try {
      state.session = { projector, checkpoint, pending: pendingEvents(deps, start) };
      await work(state.session);
    } finally {
      state.session = null;
      ending.signal.removeEventListener('abort', end);
      end();
    }
  }

  async function projectAll(session: Session): Promise<void> {
    const { pending } = session;
    while (!ending.signal.aborted) {
      if (pending.size === 0) {
        if (pending.complete) progress.noteCaughtUp();
        await pending.changed();
        await gathered(pending);
      } else if (!(await projectNext(session, deps, progress, batchSize))) {
        await follow(session, deps, progress, ending.signal);
      } else if (pending.size > 0) {
        // An embedded store works in this thread: between two batches others get their turn.
        await clock.sleep(0);
      }
    }
  }
}

/** false: another process projects. */
async function projectNext(
  session: Session,
  { judgeReceipt }: RunnerDeps,
  progress: Progress,
  batchSize: number,
): Promise<boolean> {
  const { pending, projector, checkpoint } = session;
  const batch = pending.first(batchSize);
  const [first, last] = [batch[0], batch.at(-1)];
  if (first === undefined || last === undefined) return true;
  const to = { position: last.position, origin: checkpoint?.origin ?? first.id };
  const result = await projectBatch(projector, await judgeEvents(batch, judgeReceipt), checkpoint, to);
  if (result.outcome === 'projected') moveTo(session, progress, to);
  if (result.outcome === 'elsewhere') moveTo(session, progress, result.checkpoint);
  return result.outcome === 'projected';
}

/** Drops what another process projects, until nothing is left or its checkpoint stands still. */
async function follow(
  session: Session,
  { clock }: RunnerDeps,
  progress: Progress,
  signal: AbortSignalLike,
): Promise<void> {
  let movedAt = clock.monotonic();
  while (!signal.aborted && clock.monotonic() - movedAt < TAKE_OVER_MS) {
    if (session.pending.size === 0) {
      await session.pending.changed();
      movedAt = clock.monotonic();
    }
    await clock.sleep(FOLLOW_MS, signal);
    const checkpoint = await readCheckpoint(session.projector.db);
    if (checkpoint?.position === session.checkpoint?.position) continue;
    moveTo(session, progress, checkpoint);
    movedAt = clock.monotonic();
  }
}

function moveTo(session: Session, progress: Progress, to: Checkpoint | null): void {
  const from = session.checkpoint;
  const onwards =
    to !== null && (from === null || (to.origin === from.origin && to.position >= from.position));
  if (!onwards) throw new CheckpointMoved();
  session.checkpoint = to;
  session.pending.dropThrough(to.position);
  progress.set(to.position);
  if (session.pending.size === 0 && session.pending.complete) progress.noteCaughtUp();
}

/** Events of one append arrive some microtasks apart: without a few turns each would be a batch of its own. */
async function gathered(pending: PendingEvents): Promise<void> {
  for (let seen = -1; seen !== pending.size; ) {
    seen = pending.size;
    for (let turn = 0; turn < 8; turn++) await undefined;
  }
}

/** The rows were taken back (a rebuild, a restored backup): the subscription starts anew from where they are. */
class CheckpointMoved extends Error {}

/** The stored checkpoint. Rows of another log are cleared where the store is disposable, and refused elsewhere. */
async function checkpointOfThisLog(
  { log, store, logger }: RunnerDeps,
  { db, shapes }: Projector,
): Promise<Checkpoint | null> {
  const checkpoint = await readCheckpoint(db);
  if (checkpoint === null) return null;
  const [first] = await log.readAll({ after: null, max: 1 });
  if (first?.id === checkpoint.origin) return checkpoint;
  if (!store.disposable) throw new Error('the read models are of another event log: rebuild them');
  logger.warn('the read models are of another event log: replaying them');
  await clearRows(
    db,
    shapes.map((shape) => shape.name),
  );
  return null;
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
