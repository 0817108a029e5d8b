// Projects the queued events of a session, batch after batch, until none is queued.
import type { Clock } from '#src/ports/clock.ts';
import type { EventQueue } from './event-queue.ts';
import type { GenerationStore } from './generations.ts';
import type { FoldedBatch } from './projection.ts';
import type { SessionTiming } from './session-timing.ts';
import type { SharedRows } from './shared-rows.ts';

export type BatchesDeps = {
  readonly rows: SharedRows;
  readonly queue: EventQueue;
  readonly schedule: SessionTiming;
  readonly store: Pick<GenerationStore, 'disposable'>;
  readonly clock: Clock;
  readonly batchSize: number;
};

type WrittenAndNext = readonly [written: boolean, next: FoldedBatch | null];

/** Ends where `isOver` after a batch, too; false: another process has written meanwhile. */
export async function projectQueued(
  deps: BatchesDeps,
  onWritten: (batch: FoldedBatch) => void,
  isOver: () => boolean,
): Promise<boolean> {
  const { rows, queue, schedule, clock } = deps;
  let begunAt = clock.monotonic();
  let batch: FoldedBatch | null = await fold(deps, 0);
  while (batch !== null) {
    const [written, next]: WrittenAndNext = await writeBesideNext(deps, batch);
    if (!written) {
      // The next batch may have been folded over rows that were not written.
      rows.forget();
      return false;
    }
    const now = clock.monotonic();
    schedule.wrote(now, now - begunAt);
    begunAt = now;
    onWritten(batch);
    // An embedded store works in this thread: between two batches others get their turn.
    if (queue.size > 0) await clock.sleep(0);
    batch = isOver() ? null : next;
  }
  return true;
}

/** Where the store works in other threads and a batch waits, it is folded while this one is written. */
async function writeBesideNext(deps: BatchesDeps, batch: FoldedBatch): Promise<WrittenAndNext> {
  const { rows, queue, schedule, store, batchSize } = deps;
  const isBehind = queue.size - batch.events >= batchSize && !schedule.isCheckDue();
  const next = isBehind && !store.disposable ? fold(deps, batch.events) : null;
  const outcomes = await Promise.allSettled([rows.write(batch), next]);
  for (const outcome of outcomes) if (outcome.status === 'rejected') throw outcome.reason;
  return Promise.all([outcomes[0].status === 'fulfilled' && outcomes[0].value, next]);
}

const fold = ({ rows, queue, batchSize }: BatchesDeps, skipped: number): Promise<FoldedBatch> =>
  rows.fold(queue.first(batchSize, skipped));
