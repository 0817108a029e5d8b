// Recovery in a running service: closes the jobs of dead processes every few seconds.

import type { Projector } from '#projections/projector.ts';
import { type ReadModels, unavailable } from '#projections/read-models.ts';
import { isOutage } from '#src/ports/outage.ts';
import { jobRecovery, type RecoverDeps, type Recovery } from '#src/usecases/execution/recover-jobs.ts';
import type { RecordDeps } from '#src/usecases/transparency/whole-record.ts';

/** For jobs of other processes: once at the start if no other can be alive, then every few seconds. */
const SWEEP_MS = 5000;
const RETRY_MS = 500;
/** Looked at in one sweep; the oldest come first, so a later sweep gets to the others. */
const CANDIDATES_MAX = 1000;

export type RunningRecovery = Pick<Recovery, 'foundRunning' | 'unclosable'> & {
  /** Resolves when `ending` has aborted and the sweep in hand is done. */
  readonly ended: Promise<void>;
};

/** `exclusive`: a lock proves that no other process serves this log. */
export function startRecovery(
  ending: AbortSignal,
  parts: Omit<RecoverDeps, 'candidates'> & {
    readonly models: ReadModels;
    readonly projector: Pick<Projector, 'reachedHead' | 'stoppedAt'>;
    readonly exclusive: boolean;
  } & RecordDeps,
): RunningRecovery {
  const { models, projector, clock, logger, recordIsWhole } = parts;
  let { exclusive } = parts;
  const recovery = jobRecovery({ ...parts, candidates });

  async function candidates(): Promise<readonly string[]> {
    // What died with an earlier process is known only once the read models have all of its events, or all before damage.
    if (exclusive && projector.stoppedAt() === null && !(await projector.reachedHead())) throw unavailable();
    return models.monitoring.recoveryCandidates(CANDIDATES_MAX);
  }

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

  return { ended: run(), foundRunning: recovery.foundRunning, unclosable: recovery.unclosable };
}
