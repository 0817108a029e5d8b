// Jobs whose process is gone are closed once, with a receipt, and never sent again.
import { TIMES } from '#src/domain/limits.ts';
import { deleteOldest } from '#src/lib/delete-oldest.ts';
import type { AbortSignalLike } from '#src/ports/event-log.ts';
import { JOB, load } from '#src/usecases/process/stream.ts';
import type { StreamWatch } from '#src/usecases/process/watch.ts';
import { sharedPause, Worker } from '#src/usecases/process/worker.ts';
import type { RecordDeps } from '#src/usecases/transparency/whole-record.ts';
import { type CloseDeps, closeUnsent } from './close-job.ts';

export type RecoverDeps = CloseDeps & {
  /** This process: its own live jobs are never closed at once. */
  readonly owner: string;
  /**
   * Jobs whose rows show them as running. Only candidates: the stream decides. Throws if the rows are unavailable, or with
   * `exclusive` if they lack events: what died with an earlier process is known only from all of them.
   */
  readonly candidates: (exclusive: boolean) => Promise<readonly string[]>;
};

export type Recovery = {
  /**
   * Returns the jobs that it closed. `exclusive`: a lock proves that no other process runs: its jobs are closed at once.
   * Throws what `candidates` throws after the jobs that callers have found were looked at.
   */
  sweep(options?: { exclusive?: boolean }): Promise<readonly string[]>;
  /** A caller has found this job running: it is a candidate even while the rows are unavailable. */
  foundRunning(jobId: string): void;
  /** Jobs whose closing failed at the last try, other than by an unavailable part; damaged events count. */
  unclosable(): number;
};

/** Jobs that callers have found; beyond it the oldest are forgotten until they are found again. */
const FOUND_MAX = 1000;
const CLOSES_AT_ONCE = 32;
/** For jobs of other processes: once at the start if no other can be alive, then every few seconds. */
const SWEEP_MS = 5000;
const RETRY_MS = 500;

type Sweeping = RecoverDeps &
  Partial<RecordDeps> & {
    /** Ends it. */
    readonly ending?: AbortSignalLike;
    /** A lock proves that no other process serves this log. */
    readonly exclusive?: boolean;
  };

export const jobRecovery = (deps: RecoverDeps): Recovery => recoveryOf(deps).recovery;

/** `ended`: resolves when `ending` has aborted and the sweep in hand is done. */
export function keepRecovering(
  deps: Sweeping & Required<Pick<Sweeping, 'ending' | 'exclusive' | 'recordIsWhole'>>,
): Recovery & { readonly ended: Promise<void> } {
  const { recovery, worker } = recoveryOf(deps);
  return { ...recovery, ended: worker.run() };
}

function recoveryOf(deps: Sweeping) {
  const found = new Map<string, true>();
  let exclusive = deps.exclusive ?? false;
  let unavailableRows: unknown = null;
  let closed: string[] = [];

  const worker = new Worker<string>(
    { ...deps, stopping: deps.ending },
    {
      pauseMs(completed) {
        if (completed) exclusive = false;
        deps.logger.condition('recovery', worker.failing > 0 ? 'unclosable' : null);
        return exclusive ? RETRY_MS : sharedPause(SWEEP_MS, deps.clock);
      },
      // A job that looks interrupted may have been completed in what the event log has lost.
      ready: async () => (await deps.recordIsWhole?.()) ?? true,
      async candidates() {
        const [rows] = await Promise.allSettled([deps.candidates(exclusive)]);
        unavailableRows = rows.status === 'rejected' ? rows.reason : null;
        return [...(rows.status === 'fulfilled' ? rows.value : []), ...found.keys()];
      },
      keyOf: (jobId) => jobId,
      atOnce: CLOSES_AT_ONCE,
      async look(jobId, watch) {
        const state = await closeIfOrphaned(deps, watch, jobId, exclusive);
        if (state === 'running') return 'later';
        found.delete(jobId);
        if (state === 'closed') closed.push(jobId);
        return 'over';
      },
      after() {
        if (unavailableRows !== null) throw unavailableRows;
      },
      failed: {
        message: 'an interrupted job could not be closed; recovery repeats, at least every 5 minutes',
        fields: (jobId) => ({ jobId }),
      },
    },
  );
  const recovery: Recovery = {
    async sweep(options = {}) {
      exclusive = options.exclusive ?? false;
      closed = [];
      await worker.sweep();
      return closed;
    },
    foundRunning(jobId) {
      found.set(jobId, true);
      if (found.size > FOUND_MAX) deleteOldest(found);
    },
    unclosable: () => worker.failing,
  };
  return { recovery, worker };
}

/** `running`: not known to be orphaned, or another process wrote to it first. */
async function closeIfOrphaned(
  deps: RecoverDeps,
  watch: Pick<StreamWatch, 'unchangedFor'>,
  jobId: string,
  exclusive: boolean,
): Promise<'ended' | 'running' | 'closed'> {
  const view = await load(deps, JOB, jobId);
  if (view.state.status !== 'running') return 'ended';
  const { leaseMs, owner } = view.state.started;
  const unchanged = watch.unchangedFor(view);
  const orphaned = exclusive && owner !== deps.owner;
  if (!orphaned && unchanged < leaseMs + TIMES.recoveryGraceMs) return 'running';
  // An append of unknown fate is not repeated: the next sweep reads what is stored, and a shutdown need not wait.
  const once = { repeats: false };
  if ((await closeUnsent(deps, view, 'interrupted_unknown', 'recovery', once)) === null) return 'running';
  deps.logger.warn('an interrupted job was closed by recovery', { jobId });
  return 'closed';
}
