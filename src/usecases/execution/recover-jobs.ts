// Jobs whose process is gone are closed once, with a receipt, and never sent again. Leases are observed, not compared.
import { TIMES } from '#src/domain/limits.ts';
import { deleteOldest } from '#src/lib/delete-oldest.ts';
import type { Clock } from '#src/ports/clock.ts';
import { EventLogUnavailable } from '#src/ports/event-log.ts';
import { isOutage } from '#src/ports/outage.ts';
import { loadJob } from '#src/usecases/event-streams.ts';
import { type Append, type CloseDeps, closeUnsent } from './close-job.ts';

// ── observed leases ─────────────────────────────────────────────────────────────────────────────────────

/** How long this process has itself observed a stream unchanged, on its own monotonic clock. */
export type StreamWatch = {
  /** ms since the stream was first observed at this revision; 0 at first sight and after every change. */
  unchangedFor(stream: string, revision: string): number;
  /** Forgets all streams: they may have changed while they were not observed. */
  reset(): void;
  /** Forgets the streams that are not in the list. */
  keepOnly(streams: ReadonlySet<string>): void;
};

/** `limit`: beyond it the oldest entries are forgotten, which only starts their observation again. */
export function streamWatch(clock: Pick<Clock, 'monotonic'>, limit = 10_000): StreamWatch {
  const seen = new Map<string, { readonly revision: string; readonly since: number }>();
  return {
    unchangedFor(stream, revision) {
      const now = clock.monotonic();
      const entry = seen.get(stream);
      if (entry?.revision === revision) return now - entry.since;
      seen.delete(stream);
      seen.set(stream, { revision, since: now });
      if (seen.size > limit) deleteOldest(seen);
      return 0;
    },
    reset: () => seen.clear(),
    keepOnly(streams) {
      for (const stream of seen.keys()) if (!streams.has(stream)) seen.delete(stream);
    },
  };
}

// ── recovery ────────────────────────────────────────────────────────────────────────────────────────────

export type RecoverDeps = CloseDeps & {
  /** This process: its own live jobs are never closed at once. */
  readonly owner: string;
  /** Jobs whose rows show them as running. Only candidates: the stream decides. */
  readonly candidates: () => Promise<readonly string[]>;
};

type Recovery = {
  /** Returns the jobs that it closed. `exclusive`: a lock proves that no other process runs: its jobs are closed at once. */
  sweep(options?: { exclusive?: boolean }): Promise<readonly string[]>;
};

export function jobRecovery(deps: RecoverDeps): Recovery {
  const watch = streamWatch(deps.clock);
  return {
    async sweep({ exclusive = false } = {}) {
      try {
        return await sweepOnce(deps, watch, exclusive);
      } catch (error) {
        // What happened while the event log was unavailable was not observed.
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
    // Another process closes the rest.
    if (deps.ending?.aborted) break;
    try {
      if (await closeIfOrphaned(deps, watch, jobId, exclusive, running)) closed.push(jobId);
    } catch (cause) {
      // One stream that cannot be read or closed does not keep the others from being closed.
      if (isOutage(cause)) throw cause;
      deps.logger.bug('an interrupted job could not be closed; recovery repeats', { jobId, cause });
    }
  }
  watch.keepOnly(running);
  return closed;
}

/** Adds the stream to `running` if the job still runs. Returns true if it was closed here. */
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
  deps.logger.warn('an interrupted job was closed by recovery', { jobId });
  return true;
}

/** An append of unknown fate is not repeated here: the next sweep reads what is stored, and a shutdown need not wait. */
const appendOnce: Append = ({ log }, stream, expected, events) => log.append(stream, expected, events);
