// One session of the runner: rows that stand at a checkpoint and the events after it. It projects batch after batch, or
// follows who does. When to give up and begin anew it leaves to the runner.

import type { RecordedEvent } from '#src/domain/event-codec.ts';
import type { Clock } from '#src/ports/clock.ts';
import type { AbortSignalLike, EventLog } from '#src/ports/event-log.ts';
import type { Logger } from '#src/ports/logger.ts';
import type { ReadStore } from '#src/ports/read-store.ts';
import { type JudgeReceipt, judgeEvents, type Projector, projectBatch } from './batch.ts';
import type { CatchUp } from './catch-up.ts';
import { type Checkpoint, type Checkpoints, readCheckpoints } from './checkpoint.ts';
import { eventMark } from './last-event.ts';
import { isMidAppend, type PendingEvents } from './pending.ts';
import type { Progress } from './progress.ts';
import type { Purge } from './purge.ts';
import type { Db } from './rows.ts';
import type { VersionNotice } from './version-notice.ts';
import { isNewer, readVersionGaps } from './versions.ts';

export type RunnerDeps = {
  readonly log: Pick<EventLog, 'subscribeAll' | 'readAll' | 'readStream' | 'head'>;
  readonly store: Pick<ReadStore<Db>, 'open' | 'disposable'>;
  readonly judgeReceipt: JudgeReceipt;
  /** For the transparency log's tree. */
  readonly clock: Clock;
  readonly logger: Logger;
};

export type SessionDeps = RunnerDeps & {
  readonly batchSize: number;
  readonly progress: Progress;
  readonly catchUp: CatchUp;
  readonly purge: Purge;
  readonly notice: VersionNotice;
  /** Told whenever something was done, or nothing is left to do: the store is proven to work. */
  readonly worked: () => void;
  /** Ends the session after the batch in hand. */
  readonly signal: AbortSignalLike;
};

/**
 * `projects`: this process projects, or tries to. `follows`: another projects; it takes over where that one stands still.
 * `superseded`: rows of a newer version stand; it follows whoever tells them and never takes over.
 */
export type Role = 'projects' | 'follows' | 'superseded';

export type Session = {
  readonly pending: PendingEvents;
  readonly projector: Projector;
  /** Model → position up to which its rows stood when the session began. */
  readonly told: Checkpoints['told'];
  checkpoint: Checkpoint | null;
  role: Role;
  /** The rows have come, in this session, to where a batch more ends what is to be projected. */
  nearHead: boolean;
};

/** How often a session without events looks whether its rows are still those of the store. */
const LOOK_MS = 1000;
/** How often a follower with events at hand looks at the checkpoint. */
const FOLLOW_MS = 10;
/** A checkpoint that stands still this long, with events to project, has lost its projector. */
const TAKE_OVER_MS = 100;
/** How long the rest of an append is waited for, where it is known that there must be one. */
const APPEND_MS = 50;

/** The rows were taken back (a rebuild, a restored backup, a store made anew): begin again from where they are. */
export class RowsMoved extends Error {}

/** Until `signal` aborts; throws what the store threw, or `RowsMoved`. */
export async function projectAll(session: Session, deps: SessionDeps): Promise<void> {
  const { pending } = session;
  while (!deps.signal.aborted) {
    if (purgeInMs(session, deps) === 0) await deps.purge.step(session.projector);
    if (pending.size === 0) await nextEvents(session, deps);
    else if (session.role !== 'projects') await follow(session, deps);
    else if (!(await projectNext(session, deps))) continue;
    // An embedded store works in this thread: between two batches others get their turn.
    else if (pending.size > 0) await deps.clock.sleep(0);
  }
}

/** Under a steady load there is always an event to come: near the head is near enough. */
function purgeInMs({ pending, role, nearHead }: Session, { purge, batchSize }: SessionDeps): number {
  const mayPurge = role !== 'superseded' && nearHead && pending.size <= batchSize;
  return mayPurge ? purge.dueInMs(role === 'projects') : Number.POSITIVE_INFINITY;
}

async function nextEvents(session: Session, deps: SessionDeps): Promise<void> {
  const { pending, projector } = session;
  const { clock, store, progress, worked } = deps;
  if (pending.complete) {
    session.nearHead = true;
    progress.noteCaughtUp();
    worked();
  }
  const timer = new AbortController();
  const look = clock.sleep(Math.min(LOOK_MS, purgeInMs(session, deps)), timer.signal);
  await Promise.race([pending.changed(), look]);
  timer.abort();
  await gathered(pending);
  // A damaged store is found by its readers too: made anew, it has no rows, and no event would say so.
  if (pending.size > 0 || deps.signal.aborted) return;
  if ((await store.open()) !== projector.db) throw new RowsMoved();
  if (!store.disposable) await lookAtCheckpoint(session, deps);
}

/** Another process may have replaced the rows of a shared store, or gone on with them: no event says so either. */
async function lookAtCheckpoint(session: Session, deps: SessionDeps): Promise<void> {
  const { pending, projector, checkpoint } = session;
  // What comes meanwhile is not kept waiting, nor is the end, by a database that answers nothing.
  const stored = await Promise.race([readCheckpoints(projector.db), pending.changed().then(() => null)]);
  if (stored === null) return;
  const now = followed(session, stored);
  if (now?.position === checkpoint?.position && now?.origin === checkpoint?.origin) return;
  // The first rows may be of any log: a new session looks of which.
  if (checkpoint === null) throw new RowsMoved();
  moveTo(session, deps, now, 0);
}

/** Who tells newer rows may do so as another set. */
const followed = ({ role, projector }: Session, stored: Checkpoints): Checkpoint | null =>
  role === 'superseded' ? stored.standing(projector.set) : stored.own(projector.set);

/** false: it is not for this process to project. */
async function projectNext(session: Session, deps: SessionDeps): Promise<boolean> {
  const { projector, told, checkpoint } = session;
  const batch = await nextBatch(session, deps);
  const [first, last] = [batch[0], batch.at(-1)];
  if (first === undefined || last === undefined) return true;
  const origin = checkpoint?.origin ?? first.id;
  const to = { position: last.position, origin, event: eventMark(last) };
  const judged = await judgeEvents(batch, deps.judgeReceipt);
  const result = await projectBatch(projector, told, judged, checkpoint, to);
  if (result.outcome === 'projected') {
    moveTo(session, deps, to, batch.length);
    return true;
  }
  session.role = 'follows';
  if (result.outcome === 'elsewhere') moveTo(session, deps, result.checkpoint, 0);
  if (result.outcome === 'superseded') {
    session.role = 'superseded';
    deps.notice(result.gaps);
  }
  return false;
}

/** Never ends in the middle of an append: a job would be seen completed and yet without its receipt. */
async function nextBatch({ pending }: Session, deps: SessionDeps): Promise<readonly RecordedEvent[]> {
  const { clock, signal } = deps;
  const until = clock.monotonic() + APPEND_MS;
  for (;;) {
    const batch = pending.first(deps.batchSize);
    const left = until - clock.monotonic();
    const isAll = batch.length === pending.size;
    if (!isAll || !isMidAppend(batch.at(-1)) || left <= 0 || signal.aborted) return batch;
    const timer = new AbortController();
    await Promise.race([pending.changed(), clock.sleep(left, timer.signal)]);
    timer.abort();
  }
}

/** Drops what another process projects, until nothing is left or its checkpoint stands still. */
async function follow(session: Session, deps: SessionDeps): Promise<void> {
  const { clock, signal } = deps;
  const { db } = session.projector;
  const superseded = session.role === 'superseded';
  let movedAt = clock.monotonic();
  while (session.pending.size > 0 && clock.monotonic() - movedAt < TAKE_OVER_MS) {
    await clock.sleep(superseded ? TAKE_OVER_MS / 2 : FOLLOW_MS, signal);
    if (signal.aborted) return;
    const checkpoint = followed(session, await readCheckpoints(db));
    if (checkpoint?.position === session.checkpoint?.position) continue;
    moveTo(session, deps, checkpoint, 0);
    movedAt = clock.monotonic();
  }
  if (session.pending.size === 0) return;
  if (!superseded) session.role = 'projects';
  else if (!(await isSuperseded(session.projector))) throw new RowsMoved();
}

async function isSuperseded({ db, models }: Projector): Promise<boolean> {
  const { told } = await readCheckpoints(db);
  return (await readVersionGaps(db, models, told)).some(isNewer);
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
  if (!session.pending.complete) return;
  if (session.pending.size === 0) progress.noteCaughtUp();
  if (session.pending.size <= deps.batchSize) session.nearHead = true;
}

/** Events of one append arrive some microtasks apart: without a few turns each would be a batch of its own. */
async function gathered(pending: PendingEvents): Promise<void> {
  for (let seen = -1; seen !== pending.size; ) {
    seen = pending.size;
    for (let turn = 0; turn < 8; turn++) await undefined;
  }
}
