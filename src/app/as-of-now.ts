// Corrects lists and counts of receipts by the published keys as they are now: the rows store what was verified when a
// receipt was recorded.
import type { DecisionSummary } from '#projections/decision/query.ts';
import { windowStart } from '#projections/monitoring/query.ts';
import type { ProofRecord } from '#projections/proof/query.ts';
import { TRUST_WINDOW_MS } from '#src/domain/monitoring/trust.ts';
import type { Reads } from '#src/http/deps.ts';
import type { Clock } from '#src/ports/clock.ts';
import type { UndoneReceipts } from '#src/usecases/receipts/revoked-receipts.ts';

export type AsOfNow = Pick<Reads, 'proof' | 'trust' | 'decision'> & {
  readonly receipt: Pick<Reads['receipt'], 'countUnverified'>;
};

export type AsOfNowDeps = {
  /** As stored. */
  readonly models: AsOfNow;
  readonly undone: UndoneReceipts;
  readonly clock: Pick<Clock, 'now'>;
};

export function asOfNow({ models, undone, clock }: AsOfNowDeps): AsOfNow {
  const { proof, trust, decision, receipt } = models;
  const proofs = async (found: readonly ProofRecord[]) => await standing(undone, found);
  const decisions = async <D extends DecisionSummary>(found: readonly D[]): Promise<readonly D[]> => {
    const outcomes = await standing(
      undone,
      found.map(({ outcome }) => outcome),
    );
    return found.map((one, at) => ({ ...one, outcome: outcomes[at] ?? one.outcome }));
  };
  return {
    proof: {
      recent: async (limit) => proofs(await proof.recent(limit)),
      recentFailures: async (since, limit) => proofs(await proof.recentFailures(since, limit)),
    },
    decision: {
      async find(id) {
        const found = await decision.find(id);
        if (found === null) return null;
        const [shown = found] = await decisions([found]);
        return shown;
      },
      recent: async (limit) => decisions(await decision.recent(limit)),
    },
    trust: {
      payments: () => trust.payments(),
      async receipts(since) {
        const [found, less] = await Promise.all([trust.receipts(since), undone.counts(since)]);
        if (less === null) return found;
        const { receipts, recent, latestVerifiedAt } = less;
        return {
          ...found,
          // Counted apart: a receipt may have come between, or an old one gone.
          verified: Math.max(0, found.verified - receipts),
          recentVerified: Math.max(0, found.recentVerified - recent),
          latestVerifiedAt,
        };
      },
    },
    receipt: {
      async countUnverified() {
        // The same minute as in the trust query, so that both share one count.
        const since = windowStart(clock.now(), TRUST_WINDOW_MS);
        const [recorded, less] = await Promise.all([receipt.countUnverified(), undone.counts(since)]);
        return recorded + (less?.receipts ?? 0);
      },
    },
  };
}

type Verified = { readonly receiptId: string | null; readonly receiptVerified: boolean };

/** The receipts that were found good are looked up at once. */
async function standing<V extends Verified>(
  undone: Pick<UndoneReceipts, 'among'>,
  found: readonly V[],
): Promise<readonly V[]> {
  const good = found.flatMap(({ receiptId, receiptVerified }) =>
    receiptVerified && receiptId !== null ? [receiptId] : [],
  );
  const bad = await undone.among(good);
  return found.map((one) =>
    one.receiptId !== null && bad.has(one.receiptId) ? { ...one, receiptVerified: false } : one,
  );
}
