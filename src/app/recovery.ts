// When jobs of dead processes are looked for: once at the start where nobody else can live, then every few seconds.
import type { ReadModels } from '#projections/read-models.ts';
import type { ProjectionRunner } from '#projections/runner.ts';
import { Fault } from '#src/domain/refusal.ts';
import { EventLogUnavailable } from '#src/ports/event-log.ts';
import { jobRecovery, type RecoverDeps } from '#src/usecases/execution/recover-jobs.ts';

export type RecoveryLoopDeps = Omit<RecoverDeps, 'candidates'> & {
  readonly models: ReadModels;
  readonly runner: ProjectionRunner;
  /** A lock proves that no other process serves this log. */
  readonly exclusive: boolean;
};

const SWEEP_MS = 5000;
const RETRY_MS = 500;
/** Looked at in one sweep; the oldest come first, so a later sweep gets to the others. */
const CANDIDATES_MAX = 1000;

/** Resolves when `ending` aborts and the sweep in hand is done. */
export async function recoverUntil(ending: AbortSignal, deps: RecoveryLoopDeps): Promise<void> {
  const { models, runner, clock, logger } = deps;
  const recovery = jobRecovery({
    ...deps,
    candidates: async () =>
      (await models.monitoring.recoveryCandidates(CANDIDATES_MAX)).map((candidate) => candidate.jobId),
  });
  let exclusive = deps.exclusive;
  while (!ending.aborted) {
    let pause = SWEEP_MS;
    try {
      // What died with a process before this one is known only once the read models have all of its events.
      if (exclusive && !(await runner.reachedHead())) pause = RETRY_MS;
      else {
        await recovery.sweep({ exclusive });
        exclusive = false;
      }
    } catch (cause) {
      pause = exclusive ? RETRY_MS : SWEEP_MS;
      const away = cause instanceof EventLogUnavailable || cause instanceof Fault;
      if (!away) logger.error('recovery of interrupted jobs failed', { cause });
    }
    await clock.sleep(pause, ending);
  }
}
