// One session of the runner: a validated generation and the events after its position, projected batch after batch by
// this process or by another. When to give up and begin again is the runner's decision.
import { Cancel, unlessAborted } from '#src/lib/time.ts';
import type { Clock } from '#src/ports/clock.ts';
import { type AbortSignalLike, type EventLog, EventLogUnavailable } from '#src/ports/event-log.ts';
import type { Logger } from '#src/ports/logger.ts';
import {
  currentSchema,
  type Generation,
  type GenerationStore,
  logHolds,
  markUsed,
  pruneGenerations,
} from './generations.ts';
import type { PendingEvents } from './pending.ts';
import type { Progress } from './progress.ts';
import { type JudgeReceipt, judgeEvents, type Projector, readHead } from './projection.ts';
import type { Purge } from './purge.ts';
import type { Db } from './rows.ts';

export type RunnerDeps = {
  readonly log: Pick<EventLog, 'subscribeAll' | 'readAll' | 'readStream' | 'head'>;
  readonly store: GenerationStore;
  readonly judgeReceipt: JudgeReceipt;
  readonly clock: Clock;
  readonly logger: Logger;
};

export type SessionDeps = RunnerDeps & {
  readonly batchSize: number;
  readonly progress: Progress;
  readonly purge: Purge;
  /** Called whenever something was done, or nothing is left to do: the store works. */
  readonly worked: () => void;
  /** Ends the session after the batch in flight. */
  readonly signal: AbortSignalLike;
};

/** `projects`: this process wrote last. `follows`: another one did; this one takes over if that one stops. */
export type Role = 'projects' | 'follows';

export type Session = {
  readonly generation: Generation;
  readonly schema: string;
  readonly db: Db;
  readonly pending: PendingEvents;
  readonly projector: Projector;
  role: Role;
  /** The rows have come, in this session, within a batch of the log's head. */
  nearHead: boolean;
  /** Monotonic ms of the last `markUsed`, with its pruning, and of the last comparison with the log. */
  readonly kept: { usedAt: number; comparedAt: number };
  /** How long the next batch gathers where no reader waits. */
  lingerMs: number;
  /** Monotonic ms until which no batch begins for a reader that waits. */
  restUntil: number;
};

/**
 * One transaction costs about the same for one event as for a hundred: without a waiting reader a batch gathers for `times`
 * as long as the last one took, so that projection leaves 95 % of the thread to executions.
 */
const LINGER_MS = { least: 100, most: 500, times: 20 };
/**
 * After a batch, readers that wait get the next one when so many times its length has passed: reads of what does not exist
 * take a fifth of the thread at most, however many they are.
 */
const REST = 4;
/** With events pending, a projection position that does not move for this long has lost its projector. */
const TAKE_OVER_MS = 1000;
/** How often a session checks the store and the log. */
const LOOK_MS = 1000;
const MARK_USED_MS = 60_000;
const UNUSED_MS = 7 * 86_400_000;
const HISTORY_MS = 250;

/** The rows or their handle are no longer those of this session: begin again from where they are. */
export class RowsMoved extends Error {}
/** The log's connection was lost and has returned, or lacks an event of the rows: they are validated before they are read. */
export class HistoryDoubted extends Error {}

/** Until `signal` aborts; throws what the store threw, or one of the two errors above. */
export async function projectAll(session: Session, deps: SessionDeps): Promise<void> {
  const { pending } = session;
  const { clock, signal, progress } = deps;
  let lookedAt = clock.monotonic();
  let movedAt = lookedAt;
  const isRested = () => clock.monotonic() >= session.restUntil;
  /** Whether not to wait for more events. */
  const isDue = () => (progress.isAwaited() && isRested()) || pending.interrupted || signal.aborted;
  const isFull = () => isDue() || pending.size >= deps.batchSize;
  /** Not beyond the end of the rest: then a reader that waits counts. */
  const pause = (ms: number) => (isRested() ? ms : Math.min(ms, session.restUntil - clock.monotonic()));
  while (!signal.aborted) {
    if (pending.interrupted) throw new HistoryDoubted();
    if (clock.monotonic() - lookedAt >= LOOK_MS) {
      await look(session, deps);
      lookedAt = clock.monotonic();
    }
    if (purgeInMs(session, deps) === 0) await purgeStep(session, deps);
    // Events that arrived before an interruption may be of a lost history.
    if (pending.interrupted || signal.aborted) continue;
    if (pending.size === 0) {
      noteCaughtUp(session, deps);
      await changed(session, deps, Math.min(LOOK_MS, purgeInMs(session, deps)));
      movedAt = clock.monotonic();
    } else if (session.role === 'projects') {
      const due = (pending.oldestArrival() ?? 0) + session.lingerMs - clock.monotonic();
      if (due <= 0 || isFull()) await projectNext(session, deps);
      else await changed(session, deps, pause(due), isFull);
    } else {
      if (await follow(session, deps)) movedAt = clock.monotonic();
      const isStuck = clock.monotonic() - movedAt >= TAKE_OVER_MS;
      const isAsked = progress.isAwaited() && isRested();
      if (pending.size > 0 && (isAsked || isStuck)) await projectNext(session, deps);
      else if (pending.size > 0) await changed(session, deps, pause(LINGER_MS.least), isDue);
    }
  }
}

export const lingerAfter = (tookMs: number): number =>
  Math.min(LINGER_MS.most, Math.max(LINGER_MS.least, LINGER_MS.times * tookMs));

/** At most `ms`, until something happens after which `isEnough` holds. */
async function changed(
  { pending }: Session,
  { clock }: SessionDeps,
  ms: number,
  isEnough?: () => boolean,
): Promise<void> {
  const timer = new Cancel();
  if (isEnough?.() !== true) await Promise.race([pending.changed(isEnough), clock.sleep(ms, timer)]);
  timer.abort();
  // Events of one append arrive some microtasks apart: one batch for them is cheaper than two.
  for (let turn = 0; turn < 32; turn++) await undefined;
}

/** Under a steady load there is always an event to come: within a batch of the head is near enough. */
function purgeInMs({ pending, role, nearHead }: Session, { purge, batchSize }: SessionDeps): number {
  const mayPurge = nearHead && pending.size <= batchSize;
  return mayPurge ? purge.dueInMs(role === 'projects') : Number.POSITIVE_INFINITY;
}

async function purgeStep(session: Session, deps: SessionDeps): Promise<void> {
  await deps.purge.step(session.db);
  await follow(session, deps);
}

/** What no event says: another handle, another schema, rows that somebody changed, a log with another history. */
async function look(session: Session, deps: SessionDeps): Promise<void> {
  const { store } = deps;
  if ((await store.open(session.schema)) !== session.db) throw new RowsMoved();
  if (!store.disposable) {
    const current = await currentSchema(await store.shared(), session.generation);
    if (current !== session.schema) throw new RowsMoved();
    await follow(session, deps);
    await keepUsed(session, deps);
  }
  await assertHistory(session, deps);
}

/** Before events are projected over the rows, too: no batch joins two histories. No backup is restored in HISTORY_MS. */
async function assertHistory({ projector, kept }: Session, { log, clock }: SessionDeps): Promise<void> {
  const now = clock.monotonic();
  if (now - kept.comparedAt < HISTORY_MS) return;
  kept.comparedAt = now;
  try {
    if (await logHolds(log, projector.head)) return;
  } catch (error) {
    // An unavailable log proves nothing.
    if (error instanceof EventLogUnavailable) return;
    throw error;
  }
  throw new HistoryDoubted();
}

async function keepUsed({ schema, kept }: Session, { store, clock, logger }: SessionDeps): Promise<void> {
  const now = clock.monotonic();
  if (now - kept.usedAt < MARK_USED_MS) return;
  kept.usedAt = now;
  const shared = await store.shared();
  await markUsed(shared, schema);
  const dropped = await shared.transaction((tx) => pruneGenerations(tx, schema, UNUSED_MS));
  if (dropped.length > 0) logger.info('dropped read models that no process has used for 7 days', { dropped });
}

/** Reads how far another process has come; returns whether that is further than before. */
async function follow(session: Session, deps: SessionDeps): Promise<boolean> {
  const { projector, pending } = session;
  const head = await unlessAborted(readHead(session.db), deps.signal);
  if (head === null) return false;
  const before = projector.head;
  if (head.version === before.version) return false;
  if (head.version < before.version || (head.position ?? '') < (before.position ?? '')) throw new RowsMoved();
  projector.moved(head);
  if (head.position === before.position) return false;
  session.role = 'follows';
  if (head.position !== null) pending.dropThrough(head.position);
  noteMoved(session, deps, 0);
  return true;
}

async function projectNext(session: Session, deps: SessionDeps): Promise<void> {
  const { db, projector, pending } = session;
  const batch = pending.first(deps.batchSize);
  const last = batch.at(-1);
  if (last === undefined) return;
  await assertHistory(session, deps);
  const begun = deps.clock.monotonic();
  const judged = await judgeEvents(batch, deps.judgeReceipt);
  if (await projector.project(db, judged, last)) {
    session.role = 'projects';
    const ended = deps.clock.monotonic();
    session.lingerMs = lingerAfter(ended - begun);
    session.restUntil = ended + REST * (ended - begun);
    pending.dropThrough(last.position);
    noteMoved(session, deps, batch.length);
    // An embedded store works in this thread: between two batches others get their turn.
    if (pending.size > 0) await deps.clock.sleep(0);
  } else {
    session.role = 'follows';
    const current = deps.store.disposable
      ? session.schema
      : await currentSchema(await deps.store.shared(), session.generation);
    if (current !== session.schema) throw new RowsMoved();
    await follow(session, deps);
  }
}

/** `events`: how many of the way this process has projected. */
function noteMoved(session: Session, deps: SessionDeps, events: number): void {
  const { progress, worked, batchSize } = deps;
  const { position } = session.projector.head;
  if (position !== null) progress.moved(position, events);
  worked();
  if (!session.pending.complete) return;
  if (session.pending.size === 0) progress.noteCaughtUp();
  if (session.pending.size <= batchSize) session.nearHead = true;
}

function noteCaughtUp(session: Session, { progress, worked }: SessionDeps): void {
  if (!session.pending.complete) return;
  session.nearHead = true;
  progress.noteCaughtUp();
  worked();
}
