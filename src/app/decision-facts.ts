// What a decision goes by of this relay's own record: the score and the failures that the trust summary shows.
import { windowStart } from '#projections/monitoring/query.ts';
import type { ReadModels } from '#projections/read-models.ts';
import type { Mode } from '#src/domain/event-fields.ts';
import {
  type CheckpointStatus,
  TRUST_WINDOW_MS,
  type TrustFacts,
  trustFacts,
  trustScore,
} from '#src/domain/monitoring/trust.ts';
import type { Clock } from '#src/ports/clock.ts';

export type MarketDeps = {
  readonly models: {
    readonly monitoring: Pick<ReadModels['monitoring'], 'summary'>;
    readonly trust: Pick<ReadModels['trust'], 'receipts'>;
  };
  readonly checkpointStanding: () => CheckpointStatus | null;
  readonly clock: Pick<Clock, 'now'>;
  readonly mode: Mode;
  readonly storage: TrustFacts['storage'];
};

export type Market = {
  /** 0 to 100. */
  readonly trustScore: number;
  /** 0 to 1, of the jobs finished within the window; 0 where none was. */
  readonly recentFailureRate: number;
  readonly recentFinishedJobs: number;
};

/** Throws `Fault('read_models_unavailable')` where the rows are away or still being replayed. */
export function marketFacts({
  models,
  checkpointStanding,
  clock,
  ...runs
}: MarketDeps): () => Promise<Market> {
  return async () => {
    const now = clock.now();
    const [{ stats, failureRate }, receipts] = await Promise.all([
      models.monitoring.summary(now, TRUST_WINDOW_MS),
      models.trust.receipts(windowStart(now, TRUST_WINDOW_MS)),
    ]);
    return {
      trustScore: trustScore(trustFacts(runs, stats, receipts, checkpointStanding())).score,
      recentFailureRate: failureRate,
      recentFinishedJobs: stats.recentSucceeded + stats.recentFailed,
    };
  };
}
