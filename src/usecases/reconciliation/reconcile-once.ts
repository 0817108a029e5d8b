// The comparison of the books with the chain as a command runs it: all rounds until the newest block that counts.

import type { ChainReconciled } from '#src/domain/events/payment.ts';
import type { ChainAccount, ChainBlock } from '#src/domain/payment/reconciliation.ts';
import type { AbortSignalLike } from '#src/ports/event-log.ts';
import { openLedger } from '#src/usecases/payments/read-ledger.ts';
import { openTurns } from './judge-open.ts';
import { type ReconcileDeps, type RoundFound, reconcileChain } from './reconcile-chain.ts';

export type Reconciled = {
  readonly rounds: readonly ChainReconciled[];
  /** Of all rounds, by the streams of the payments. */
  readonly found: Omit<RoundFound, 'unread'>;
  /** The newest block that counts. */
  readonly upTo: ChainBlock;
};

export type OnceOptions = {
  readonly account: ChainAccount;
  /** Compares again from this block on; null: continues. */
  readonly from: number | null;
  readonly signal: AbortSignalLike;
  /** Called after each round. `upTo`: the last block that is to be compared. */
  readonly onRound: (round: ChainReconciled) => void;
};

const PAUSE_MS = 500;

/**
 * Services may compare at the same time: what they are faster with is not repeated. Throws `ChainUnavailable`, and what the
 * event log throws.
 */
export async function reconcileOnce(deps: ReconcileDeps, options: OnceOptions): Promise<Reconciled> {
  const { account, signal, onRound } = options;
  const ledger = openLedger(deps.log);
  const turns = openTurns();
  const rounds: ChainReconciled[] = [];
  const found = {
    settled: [] as string[],
    corrected: [] as string[],
    missing: [] as string[],
    rejected: [] as string[],
  };
  let { from } = options;
  let isRepeated = false;
  for (;;) {
    const result = await reconcileChain(deps, ledger, { account, from, signal, turns });
    if (result.kind === 'up_to_date') return { rounds, found, upTo: result.upTo };
    if (result.kind === 'overtaken') {
      if (signal.aborted) throw new Error('interrupted');
      await deps.clock.sleep(PAUSE_MS, signal);
      continue;
    }
    rounds.push(result.round);
    onRound(result.round);
    found.settled.push(...result.found.settled);
    found.corrected.push(...result.found.corrected);
    found.missing.push(...result.found.missing);
    found.rejected.push(...result.found.rejected);
    // Once: a node that leaves a transfer out again would be asked without end.
    from = result.more || isRepeated ? null : result.found.unread;
    isRepeated ||= from !== null;
  }
}
