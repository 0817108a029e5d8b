// What a decision uses of this relay's own record: the score and the failures of the trust summary.
import type { DecisionFacts } from '#src/domain/decision/recommend.ts';
import type { Mode } from '#src/domain/event-fields.ts';
import {
  type CheckpointStatus,
  type TrustFacts,
  trustFacts,
  trustScore,
} from '#src/domain/monitoring/trust.ts';

export type MarketFacts = Pick<DecisionFacts, 'trustScore' | 'recentFailureRate' | 'recentFinishedJobs'>;

export type MarketDeps = {
  /** Of the trust window that ends at `now` (Unix ms). Each throws `Fault('read_models_unavailable')`. */
  readonly rows: {
    jobs(now: number): Promise<{
      readonly stats: Pick<TrustFacts, 'recentSucceeded' | 'recentFailed'>;
      readonly failureRate: number;
    }>;
    receipts(now: number): Promise<{ readonly receipts: number; readonly verified: number }>;
  };
  readonly checkpointStanding: () => CheckpointStatus | null;
  readonly clock: { now(): number };
  readonly mode: Mode;
  readonly storage: TrustFacts['storage'];
};

/** Throws `Fault('read_models_unavailable')`. */
export async function marketFacts({
  rows,
  checkpointStanding,
  clock,
  mode,
  storage,
}: MarketDeps): Promise<MarketFacts> {
  const now = clock.now();
  const [{ stats, failureRate }, receipts] = await Promise.all([rows.jobs(now), rows.receipts(now)]);
  const facts = trustFacts({ mode, storage }, stats, receipts, checkpointStanding());
  return {
    trustScore: trustScore(facts).score,
    recentFailureRate: failureRate,
    recentFinishedJobs: stats.recentSucceeded + stats.recentFailed,
  };
}
