// Jobs whose process is gone are closed once, with a receipt, and never sent again. Leases are observed, not compared.
import { STREAM } from '#src/domain/events.ts';
import { TIMES } from '#src/domain/limits.ts';
import { deleteOldest } from '#src/lib/delete-oldest.ts';
import type { Clock } from '#src/ports/clock.ts';
import { type AbortSignalLike, EventDamaged, EventLogUnavailable } from '#src/ports/event-log.ts';
import { isOutage } from '#src/ports/outage.ts';
import { JOB, load } from '#src/usecases/process/stream.ts';
import type { RecordDeps } from '#src/usecases/transparency/whole-record.ts';
import { type CloseDeps, closeUnsent } from './close-job.ts';

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
/** Jobs that are closed in parallel, so that their appends are committed together, and among those of many calls. */
const CLOSES_AT_ONCE = 32;
/** Until the next try to close a job whose closing failed. */
const REPEAT_MS = { first: 5000, most: 300_000 };

type Failure = { readonly tries: number; readonly until: number };

export function jobRecovery(deps: RecoverDeps): Recovery {
  const watch = streamWatch(deps.clock);
  const found = new Map<string, true>();
  const failures = new Map<string, Failure>();
  /** Causes of the failures that exist now: one line for each, however many jobs it concerns and however often. */
  const logged = new Set<string>();

  async function sweepOnce(exclusive: boolean): Promise<string[]> {
    const [rows] = await Promise.allSettled([deps.candidates(exclusive)]);
    const candidates = new Set([...(rows.status === 'fulfilled' ? rows.value : []), ...found.keys()]);
    const jobs = [...candidates];
    const closed: string[] = [];
    const running = new Set<string>();
    for (let at = 0; at < jobs.length && !deps.ending?.aborted; at += CLOSES_AT_ONCE) {
      const looks = await Promise.allSettled(
        jobs.slice(at, at + CLOSES_AT_ONCE).map((jobId) => look(jobId, exclusive)),
      );
      for (const [i, result] of looks.entries()) {
        if (result.status === 'rejected') throw result.reason;
        const jobId = jobs[at + i] ?? '';
        if (result.value === 'running') running.add(STREAM.job(jobId));
        if (result.value === 'closed') closed.push(jobId);
      }
    }
    watch.keepOnly(running);
    for (const jobId of failures.keys()) if (!running.has(STREAM.job(jobId))) failures.delete(jobId);
    if (failures.size === 0) logged.clear();
    if (rows.status === 'rejected') throw rows.reason;
    return closed;
  }

  /** Throws only if the event log, or another part, is unavailable. */
  async function look(jobId: string, exclusive: boolean): Promise<'ended' | 'running' | 'closed'> {
    // Another process closes the rest.
    if (deps.ending?.aborted) return 'running';
    if (deps.clock.monotonic() < (failures.get(jobId)?.until ?? 0)) return 'running';
    try {
      const state = await closeIfOrphaned(deps, watch, jobId, exclusive);
      if (state !== 'running') found.delete(jobId);
      failures.delete(jobId);
      return state;
    } catch (cause) {
      if (isOutage(cause) && !(cause instanceof EventDamaged)) throw cause;
      // One stream that cannot be read or closed does not keep the others from being closed.
      noteFailure(jobId, cause);
      return 'running';
    }
  }

  function noteFailure(jobId: string, cause: unknown): void {
    const { tries } = failures.get(jobId) ?? { tries: 0 };
    const pause = Math.min(REPEAT_MS.most, REPEAT_MS.first * 2 ** tries);
    failures.set(jobId, { tries: tries + 1, until: deps.clock.monotonic() + pause });
    const text = String(cause);
    if (logged.has(text)) return;
    logged.add(text);
    const message = 'an interrupted job could not be closed; recovery repeats, at least every 5 minutes';
    if (isOutage(cause)) deps.logger.error(message, { jobId, cause });
    else deps.logger.bug(message, { jobId, cause });
  }

  return {
    async sweep({ exclusive = false } = {}) {
      try {
        return await sweepOnce(exclusive);
      } catch (error) {
        // What happened while the event log was unavailable was not observed.
        if (error instanceof EventLogUnavailable) watch.reset();
        throw error;
      }
    },
    foundRunning(jobId) {
      found.set(jobId, true);
      if (found.size > FOUND_MAX) deleteOldest(found);
    },
    unclosable: () => failures.size,
  };
}

/** For jobs of other processes: once at the start if no other can be alive, then every few seconds. */
const SWEEP_MS = 5000;
const RETRY_MS = 500;

export type KeepRecoveringDeps = RecoverDeps &
  RecordDeps & {
    /** Ends it. */
    readonly ending: AbortSignalLike;
    /** A lock proves that no other process serves this log. */
    readonly exclusive: boolean;
  };

/** `ended`: resolves when `ending` has aborted and the sweep in hand is done. */
export function keepRecovering(deps: KeepRecoveringDeps): Recovery & { readonly ended: Promise<void> } {
  const { clock, logger, ending, recordIsWhole } = deps;
  const recovery = jobRecovery(deps);
  let { exclusive } = deps;
  async function run(): Promise<void> {
    while (!ending.aborted) {
      try {
        // A job that looks interrupted may have been completed in what the event log has lost.
        if (await recordIsWhole()) {
          await recovery.sweep({ exclusive });
          exclusive = false;
        }
      } catch (cause) {
        if (!isOutage(cause)) logger.bug('recovery of interrupted jobs failed', { cause });
      }
      await clock.sleep(exclusive ? RETRY_MS : SWEEP_MS, ending);
    }
  }
  return { ...recovery, ended: run() };
}

/** `running`: not known to be orphaned, or another process wrote to it first. */
async function closeIfOrphaned(
  deps: RecoverDeps,
  watch: StreamWatch,
  jobId: string,
  exclusive: boolean,
): Promise<'ended' | 'running' | 'closed'> {
  const view = await load(deps, JOB, jobId);
  if (view.state.status !== 'running') return 'ended';
  const { leaseMs, owner } = view.state.started;
  const unchanged = watch.unchangedFor(view.stream, String(view.expected));
  const orphaned = exclusive && owner !== deps.owner;
  if (!orphaned && unchanged < leaseMs + TIMES.recoveryGraceMs) return 'running';
  // An append of unknown fate is not repeated: the next sweep reads what is stored, and a shutdown need not wait.
  const once = { repeats: false };
  if ((await closeUnsent(deps, view, 'interrupted_unknown', 'recovery', once)) === null) return 'running';
  deps.logger.warn('an interrupted job was closed by recovery', { jobId });
  return 'closed';
}
