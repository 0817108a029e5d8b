// The balance: the sums of the books, and what the chain has of them up to the last block that was compared.
import { isBalanced, needsAction, noSums, paymentState, type Sums } from '#src/domain/payment/ledger.ts';
import type { Ledger } from './read-ledger.ts';

type Asset = Pick<Sums, 'network' | 'asset'>;

/** Of one asset on one network. Amounts in atomic units. */
export type Balance = Asset &
  Readonly<Record<Exclude<keyof Sums, keyof Asset> | 'unattributed' | 'received', string>> & {
    /** The last block that was compared with the books; null: none. */
    readonly upToBlock: number | null;
    /**
     * charged = served + refunded + open, and received = charged - missing + unattributed, without the charges that no
     * compared block contains yet.
     */
    readonly balanced: boolean;
  };

/** Whether the sums of the books, taken alone, contradict each other; `of`: those of one asset. */
export const contradictsItself = ({ books }: Pick<Ledger, 'books'>, of: Asset | null = null): boolean =>
  books.some((sums) => !isBalanced(sums) && (of === null || isSame(sums, of)));

/**
 * Whether anything is left for an operator to do: a payment that needs action, or sums that do not balance. A transfer
 * without a payment is not: anyone can send one, and nothing can be recorded for it. `nowMs`: Unix ms.
 */
export function isWorkLeft(ledger: Ledger, nowMs: number): boolean {
  for (const entry of ledger.entries.values())
    if (needsAction(paymentState(entry, nowMs), entry.since, nowMs)) return true;
  return balanceOf(ledger).some(({ balanced }) => !balanced);
}

/** One row for each asset that was charged or received. */
export function balanceOf({ books, comparisons, unconfirmed }: Ledger): readonly Balance[] {
  const compared = [...comparisons.values()].map((comparison) => comparison.books);
  const rows: Sums[] = [...books];
  for (const one of compared) if (!rows.some((sums) => isSame(sums, one))) rows.push(noSums(one));
  return rows.map((sums) => {
    const { network, asset } = sums;
    const its = compared.filter((one) => isSame(one, sums));
    const received = its.reduce((sum, one) => sum + one.received, 0n);
    const unattributed = its.reduce((sum, one) => sum + one.unattributed, 0n);
    const later = [...unconfirmed.values()]
      .filter(({ account }) => isSame(account, sums))
      .reduce((sum, { amount }) => sum + amount, 0n);
    return {
      network,
      asset,
      charged: String(sums.charged),
      served: String(sums.served),
      refunded: String(sums.refunded),
      open: String(sums.open),
      missing: String(sums.missing),
      corrected: String(sums.corrected),
      unattributed: String(unattributed),
      received: String(received),
      upToBlock: its.length === 0 ? null : Math.max(...its.map(({ toBlock }) => toBlock)),
      balanced: isBalanced(sums) && received === sums.charged - sums.missing + unattributed - later,
    };
  });
}

const isSame = (a: Asset, b: Asset): boolean => a.network === b.network && a.asset === b.asset;
