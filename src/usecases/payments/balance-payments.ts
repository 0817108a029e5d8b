// The balance: the sums of the books, and what the chain has of them up to the last block that was compared.

import { isBalanced, needsAction, paymentState, type Sums } from '#src/domain/payment/ledger.ts';
import type { EventLog } from '#src/ports/event-log.ts';
import { type Ledger, readLedger } from './read-ledger.ts';

/** Of one asset on one network. Amounts in atomic units. */
export type Balance = Readonly<
  Record<
    | 'network'
    | 'asset'
    | 'charged'
    | 'served'
    | 'refunded'
    | 'open'
    | 'missing'
    | 'corrected'
    | 'unattributed'
    | 'received',
    string
  >
> & {
  /** The last block that was compared with the books; null: none. */
  readonly upToBlock: number | null;
  /**
   * charged = served + refunded + open, and received = charged - missing + unattributed, without the charges that no
   * compared block contains yet.
   */
  readonly balanced: boolean;
};

/** One row for each asset that was charged or received. Throws for an event that it cannot read. */
export const balancePayments = async (log: EventLog): Promise<readonly Balance[]> =>
  balanceOf(await readLedger(log));

/** Whether the sums of the books, taken alone, contradict each other. */
export function contradictsItself({ network, asset, ...row }: Balance): boolean {
  const [charged, served, refunded, open, missing, corrected] = [
    BigInt(row.charged),
    BigInt(row.served),
    BigInt(row.refunded),
    BigInt(row.open),
    BigInt(row.missing),
    BigInt(row.corrected),
  ];
  return !isBalanced({ network, asset, charged, served, refunded, open, missing, corrected });
}

/**
 * Whether anything is left for an operator to do: a payment that needs action, or sums that do not balance. A transfer
 * without a payment is not: anyone can send one, and nothing can be recorded for it. `nowMs`: Unix ms.
 */
export function isWorkLeft(ledger: Ledger, nowMs: number): boolean {
  for (const entry of ledger.entries.values())
    if (needsAction(paymentState(entry, nowMs), entry.since, nowMs)) return true;
  return balanceOf(ledger).some(({ balanced }) => !balanced);
}

type Asset = Pick<Sums, 'network' | 'asset'>;

const isSame = (a: Asset, b: Asset): boolean => a.network === b.network && a.asset === b.asset;

export function balanceOf({ books, comparisons, unconfirmed }: Ledger): readonly Balance[] {
  const compared = [...comparisons.values()].map((comparison) => comparison.books);
  const strangers = compared.filter((one, i) => !compared.slice(0, i).some((other) => isSame(one, other)));
  const rows: readonly Sums[] = [
    ...books,
    ...strangers.filter((one) => !books.some((sums) => isSame(sums, one))).map(noSums),
  ];
  return rows.map((sums) => {
    const ofAsset = compared.filter((one) => isSame(one, sums));
    const received = ofAsset.reduce((sum, one) => sum + one.received, 0n);
    const unattributed = ofAsset.reduce((sum, one) => sum + one.unattributed, 0n);
    const later = [...unconfirmed.values()]
      .filter(({ account }) => isSame(account, sums))
      .reduce((sum, { amount }) => sum + amount, 0n);
    return {
      network: sums.network,
      asset: sums.asset,
      charged: String(sums.charged),
      served: String(sums.served),
      refunded: String(sums.refunded),
      open: String(sums.open),
      missing: String(sums.missing),
      corrected: String(sums.corrected),
      unattributed: String(unattributed),
      received: String(received),
      upToBlock: ofAsset.length === 0 ? null : Math.max(...ofAsset.map(({ toBlock }) => toBlock)),
      balanced: isBalanced(sums) && received === sums.charged - sums.missing + unattributed - later,
    };
  });
}

const noSums = ({ network, asset }: Asset): Sums => ({
  network,
  asset,
  charged: 0n,
  served: 0n,
  refunded: 0n,
  open: 0n,
  missing: 0n,
  corrected: 0n,
});
