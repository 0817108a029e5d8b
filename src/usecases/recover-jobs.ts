// Jobs whose process is gone: closed once, with a receipt, and never sent again. Leases are watched, not compared.
import { LIMITS } from '../domain/limits.ts';
import { EventLogUnavailable } from '../ports/event-log.ts';
import { type CloseDeps, closeUnsent } from './close-job.ts';
import { loadJob } from './journal.ts';
import { type StreamWatch, streamWatch } from './stream-watch.ts';

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
    const view = await loadJob(deps.log, jobId);
    if (view.state.status !== 'running') continue;
    running.add(view.stream);
    const { leaseMs, owner } = view.state.started;
    const unchanged = watch.unchangedFor(view.stream, String(view.expected));
    const orphaned = exclusive && owner !== deps.owner;
    if (!orphaned && unchanged < leaseMs + LIMITS.recoveryGraceMs) continue;
    if ((await closeUnsent(deps, view, 'interrupted_unknown')) === null) continue;
    closed.push(jobId);
    deps.logger.warn('interrupted job closed', { jobId });
  }
  watch.keepOnly(running);
  return closed;
}
