// The comparison of the books with the chain, beside the calls of the service.

import type { ComparisonHealth } from '#src/domain/monitoring/health.ts';
import type { ChainScan } from '#src/ports/chain-scan.ts';
import type { AbortSignalLike } from '#src/ports/event-log.ts';
import type { Payments } from '#src/ports/payments.ts';
import type { PaymentFigures } from '#src/ports/telemetry.ts';
import type { JournalDeps } from '#src/usecases/event-streams.ts';
import { chainReconciler } from '#src/usecases/reconciliation/reconciler.ts';

export type Reconciling = {
  /** Resolves when `stopping` has aborted and nothing is under way. */
  readonly ended: Promise<void>;
  /** null: none yet, or demo mode. */
  figures(): PaymentFigures | null;
  /** null in demo mode. */
  health(): Promise<ComparisonHealth | null>;
};

type Options = JournalDeps & {
  /** null in demo mode: nothing is compared. */
  readonly chain: { readonly scan: ChainScan; readonly payee: string; readonly intervalMs: number } | null;
  readonly payments: Pick<Payments, 'lookUp'>;
  readonly stopping: AbortSignalLike;
  /** As the reconciler has it. */
  readonly standstillMs: number | undefined;
};

export function startReconciling({ chain, payments, stopping, ...journal }: Options): Reconciling {
  if (chain === null) return { ended: Promise.resolve(), figures: () => null, health: async () => null };
  const lookUp: Payments['lookUp'] = (...given) => payments.lookUp(...given);
  const reconciler = chainReconciler({ ...journal, ...chain, lookUp, stopping });
  return {
    ended: reconciler.run(),
    figures: reconciler.figures,
    async health() {
      const node = await chain.scan.health();
      const since = reconciler.standsStillSince();
      return !node.ok || since === null ? node : { ok: false, problem: 'not_compared', since };
    },
  };
}
