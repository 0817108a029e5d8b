// One session of the runner: rows that stand at a checkpoint and the events after it. It projects batch after batch, or
// follows who does. When to give up and begin anew it leaves to the runner.
import type { Clock } from '#src/ports/clock.ts';
import type { AbortSignalLike, EventLog } from '#src/ports/event-log.ts';
import type { Logger } from '#src/ports/logger.ts';
import type { ReadStore } from '#src/ports/read-store.ts';
import { type JudgeReceipt, judgeEvents, type Projector, projectBatch } from './batch.ts';
import type { CatchUp } from './catch-up.ts';
import {
  type Checkpoint,
  type Checkpoints,
  clearRows,
  readCheckpoint,
  readCheckpoints,
} from './checkpoint.ts';
import type { PendingEvents } from './pending.ts';
import type { Progress } from './progress.ts';
import type { Db } from './rows.ts';

export type RunnerDeps = {
  readonly log: Pick<EventLog, 'subscribeAll' | 'readAll' | 'head'>;
  readonly store: Pick<ReadStore<Db>, 'open' | 'disposable'>;
  readonly judgeReceipt: JudgeReceipt;
  readonly clock: Clock;
  readonly logger: Logger;
};

export type SessionDeps = RunnerDeps & {
  readonly batchSize: number;
  readonly progress: Progress;
  readonly catchUp: CatchUp;
  /** Told whenever something was done, or nothing is left to do: the store is proven to work. */
  readonly worked: () => void;
  /** Ends the session after the batch in hand. */
  readonly signal: AbortSignalLike;
};

export type Session = {
  readonly pending: PendingEvents;
  readonly projector: Projector;
  /** Model → position up to which its rows stood when the session began. */
  readonly told: Checkpoints['told'];
  checkpoint: Checkpoint | null;
};

/** How often a session without events looks whether its rows are still those of the store. */
const LOOK_MS = 1000;
/** How often a follower with events at hand looks at the checkpoint. */
const FOLLOW_MS = 10;
/** A checkpoint that stands still this long, with events to project, has lost its projector. */
const TAKE_OVER_MS = 100;

/** The rows were taken back (a rebuild, a restored backup, a store made anew): begin again from where they are. */
export class RowsMoved extends Error {}

/** Until `signal` aborts; throws what the store threw, or `RowsMoved`. */
export async function projectAll(session: Session, deps: SessionDeps): Promise<void> {
  const { pending } = session;
  while (!deps.signal.aborted) {
    if (pending.size === 0) await nextEvents(session, deps);
    else if (!(await projectNext(session, deps))) await follow(session, deps);
    // An embedded store works in this thread: between two batches others get their turn.
    else if (pending.size > 0) await deps.clock.sleep(0);
  }
}

async function nextEvents({ pending, projector }: Session, deps: SessionDeps): Promise<void> {
  const { clock, store, progress, worked } = deps;
  if (pending.complete) {
    progress.noteCaughtUp();
    worked();
  }
  const timer = new AbortController();
  await Promise.race([pending.changed(), clock.sleep(LOOK_MS, timer.signal)]);
  timer.abort();
  await gathered(pending);
  // A damaged store is found by its readers too: made anew, it has no rows, and no event would say so.
  if (pending.size === 0 && !deps.signal.aborted && (await store.open()) !== projector.db) {
    throw new RowsMoved();
  }
}

/** false: another process projects. */
async function projectNext(session: Session, deps: SessionDeps): Promise<boolean> {
  const { pending, projector, told, checkpoint } = session;
  const batch = pending.first(deps.batchSize);
  const [first, last] = [batch[0], batch.at(-1)];
  if (first === undefined || last === undefined) return true;
  const to = { position: last.position, origin: checkpoint?.origin ?? first.id };
  const judged = await judgeEvents(batch, deps.judgeReceipt);
  const result = await projectBatch(projector, told, judged, checkpoint, to);
  if (result.outcome === 'projected') moveTo(session, deps, to, batch.length);
  if (result.outcome === 'elsewhere') moveTo(session, deps, result.checkpoint, 0);
  return result.outcome === 'projected';
}

/** Drops what another process projects, until nothing is left or its checkpoint stands still. */
async function follow(session: Session, deps: SessionDeps): Promise<void> {
  const { clock, signal } = deps;
  let movedAt = clock.monotonic();
  while (!signal.aborted && clock.monotonic() - movedAt < TAKE_OVER_MS) {
    if (session.pending.size === 0) {
      await session.pending.changed();
      movedAt = clock.monotonic();
    }
    await clock.sleep(FOLLOW_MS, signal);
    const checkpoint = await readCheckpoint(session.projector.db, session.projector.set);
    if (checkpoint?.position === session.checkpoint?.position) continue;
    moveTo(session, deps, checkpoint, 0);
    movedAt = clock.monotonic();
  }
}

/** `events`: how many of the way were projected here. */
function moveTo(session: Session, deps: SessionDeps, to: Checkpoint | null, events: number): void {
  const { progress, catchUp, worked } = deps;
  const from = session.checkpoint;
  const onwards =
    to !== null && (from === null || (to.origin === from.origin && to.position >= from.position));
  if (!onwards) throw new RowsMoved();
  session.checkpoint = to;
  session.pending.dropThrough(to.position);
  progress.set(to.position);
  catchUp.moved(to.position, events);
  worked();
  if (session.pending.size === 0 && session.pending.complete) progress.noteCaughtUp();
}

/** Events of one append arrive some microtasks apart: without a few turns each would be a batch of its own. */
async function gathered(pending: PendingEvents): Promise<void> {
  for (let seen = -1; seen !== pending.size; ) {
    seen = pending.size;
    for (let turn = 0; turn < 8; turn++) await undefined;
  }
}

/**
 * The stored checkpoint, and what stands of each model. Rows of another log are cleared where the store is disposable,
 * and refused elsewhere.
 */
export async function checkpointOfThisLog(
  { log, store, logger }: RunnerDeps,
  { db, set, shapes }: Projector,
): Promise<Pick<Session, 'checkpoint' | 'told'>> {
  const stored = await readCheckpoints(db);
  const found = { checkpoint: stored.own(set), told: stored.told };
  if (stored.origins.length === 0) return found;
  const [first] = await log.readAll({ after: null, max: 1 });
  if (stored.origins.every((origin) => origin === first?.id)) return found;
  if (!store.disposable) throw new Error('the read models are of another event log: rebuild them');
  logger.warn('the read models are of another event log: replaying them');
  await clearRows(
    db,
    shapes.map((shape) => shape.name),
  );
  return { checkpoint: null, told: new Map() };
}
