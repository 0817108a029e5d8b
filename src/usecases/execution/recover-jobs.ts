// Jobs whose process is gone: closed once, with a receipt, and never sent again. Leases are watched, not compared.
import { TIMES } from '#src/domain/limits.ts';
import { EventLogUnavailable } from '#src/ports/event-log.ts';
import { loadJob } from '#src/usecases/event-streams.ts';
import { type Append, type CloseDeps, closeUnsent } from './close-job.ts';
import { type StreamWatch, streamWatch } from './lease-observer.ts';

export type RecoverDeps = CloseDeps & {
  /** This process: its own live jobs are never closed at once. */
  readonly owner: string;
  /** Jobs that look running. Only candidates: the stream at its revision decides. */
  readonly candidates: () => Promise<readonly string[]>;
};

export type Recovery = {
  /**
   * Looks at every candidate once and closes those that nobody runs any more; answers their ids. `exclusive`: a lock
   * proves that no other process can live, so every job of another owner is closed at once.
   */
  sweep(options?: { exclusive?: boolean }): Promise<readonly string[]>;
};

export function jobRecovery(deps: RecoverDeps): Recovery {
  const watch = streamWatch(deps.clock);
  return {
    async sweep({ exclusive = false } = {}) {
      try {
        return await sweepOnce(deps, watch, exclusive);
      } catch (error) {
        // What happened while the log was away was not watched.
        if (error instanceof EventLogUnavailable) watch.reset();
        throw error;
      }
    },
  };
}

async function sweepOnce(deps: RecoverDeps, watch: StreamWatch, exclusive: boolean): Promise<string[]> {
  const candidates = await deps.candidates();
  const closed: string[] = [];
  const running = new Set<string>();
  for (const jobId of candidates) {
    // Whoever is left does the rest.
    if (deps.ending?.aborted) break;
    try {
      if (await closeIfOrphaned(deps, watch, jobId, exclusive, running)) closed.push(jobId);
    } catch (cause) {
      // One stream that cannot be read or closed keeps no other job from its end.
      if (cause instanceof EventLogUnavailable) throw cause;
      deps.logger.error('an interrupted job could not be closed', { jobId, cause });
    }
  }
  watch.keepOnly(running);
  return closed;
}

/** Adds the stream to `running` where the job still runs; true where it was closed here. */
async function closeIfOrphaned(
  deps: RecoverDeps,
  watch: StreamWatch,
  jobId: string,
  exclusive: boolean,
  running: Set<string>,
): Promise<boolean> {
  const view = await loadJob(deps.log, jobId);
  if (view.state.status !== 'running') return false;
  running.add(view.stream);
  const { leaseMs, owner } = view.state.started;
  const unchanged = watch.unchangedFor(view.stream, String(view.expected));
  const orphaned = exclusive && owner !== deps.owner;
  if (!orphaned && unchanged < leaseMs + TIMES.recoveryGraceMs) return false;
  if ((await closeUnsent(deps, view, 'interrupted_unknown', appendOnce)) === null) return false;
  deps.logger.warn('interrupted job closed', { jobId });
  return true;
}

/** A lost answer needs no repeat here: the next sweep reads what stands, and a stop need not wait for the log. */
const appendOnce: Append = ({ log }, stream, expected, events) => log.append(stream, expected, events);
