// The sums of the books by day or month: what was charged, served and refunded in it, by the times of these events.
import { claimedTime } from '#src/domain/events.ts';
import {
  type Books,
  enter,
  evolveEntry,
  isBalanced,
  type Ledger,
  NO_ENTRY,
  needsAction,
  noSums,
  paymentState,
  type Sums,
} from '#src/domain/payment/ledger.ts';
import type { EventLog } from '#src/ports/event-log.ts';
import type { Period } from './list-payments.ts';
import { paymentHistories } from './payment-histories.ts';

/** Amounts in atomic units, decimal. */
export type PeriodSums = {
  /** `2026-01-31` or `2026-01`, UTC. */
  readonly period: string;
  readonly network: string;
  readonly asset: string;
  /** In the period. A call that was served and later refunded is taken off what was served, at its refund. */
  readonly charged: string;
  readonly served: string;
  readonly refunded: string;
  /** At the end of the period: charged so far, and neither served nor refunded. */
  readonly open: string;
};

/**
 * One row for each period and asset in which any sum changes, in order. Periods outside of `since` and `until` are left out;
 * a period that contains one of them is complete. Keeps the sums in memory. Throws for an event that it cannot read.
 */
export async function sumPayments(
  log: EventLog,
  unit: 'day' | 'month',
  { since, until }: Period,
): Promise<readonly PeriodSums[]> {
  const length = unit === 'day' ? 10 : 7;
  const changes = new Map<string, Books>();
  for await (const { events } of paymentHistories(log)) {
    const paid = events.find((event) => event.type === 'JobStarted')?.data.payment ?? null;
    let entry = NO_ENTRY;
    for (const event of events) {
      const after = evolveEntry(entry, event);
      const period = claimedTime(event).slice(0, length);
      changes.set(period, enter(changes.get(period) ?? [], event, entry, after, paid));
      entry = after;
    }
  }
  const open = new Map<string, bigint>();
  const rows: PeriodSums[] = [];
  for (const [period, books] of [...changes].sort(([a], [b]) => (a < b ? -1 : 1)))
    for (const sums of books) {
      const account = `${sums.network} ${sums.asset}`;
      const now = (open.get(account) ?? 0n) + sums.open;
      open.set(account, now);
      const isAsked =
        (since === null || period >= since.slice(0, length)) && (until === null || isBefore(period, until));
      if (isAsked && hasChanged(sums)) rows.push(rowOf(period, sums, now));
    }
  return rows;
}

/** Whether the period begins before the time. */
const isBefore = (period: string, until: string): boolean =>
  `${period}${period.length === 7 ? '-01' : ''}T00:00:00.000Z` < until;

const hasChanged = ({ charged, served, refunded, open }: Sums): boolean =>
  [charged, served, refunded, open].some((sum) => sum !== 0n);

const rowOf = (period: string, { network, asset, charged, served, refunded }: Sums, open: bigint) => ({
  period,
  network,
  asset,
  charged: String(charged),
  served: String(served),
  refunded: String(refunded),
  open: String(open),
});

// ── the balance, and what the chain has of the sums ─────────────────────────────────────────────────

type Asset = Pick<Sums, 'network' | 'asset'>;

/** Of one asset on one network. Amounts in atomic units. */
export type Balance = Asset &
  Readonly<Record<Exclude<keyof Sums, keyof Asset | 'unconfirmed'> | 'unattributed' | 'received', string>> & {
    /** The last block that was compared with the books; null: none. */
    readonly upToBlock: number | null;
    /**
     * charged = served + refunded + open, and received = charged - missing + unattributed, without the charges that no
     * compared block contains yet.
     */
    readonly balanced: boolean;
  };

/** Whether the sums of the books, taken alone, contradict each other; `of`: those of one asset. */
export const contradictsItself = ({ books }: Pick<Ledger, 'books'>, asset: Asset | null = null): boolean =>
  books.some((sums) => !isBalanced(sums) && (asset === null || isSame(sums, asset)));

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
export function balanceOf({ books, comparisons }: Pick<Ledger, 'books' | 'comparisons'>): readonly Balance[] {
  const compared = [...comparisons.values()];
  const rows: Sums[] = [...books];
  for (const one of compared) if (!rows.some((sums) => isSame(sums, one))) rows.push(noSums(one));
  return rows.map((sums) => {
    const { network, asset } = sums;
    const ofAsset = compared.filter((one) => isSame(one, sums));
    const received = ofAsset.reduce((sum, one) => sum + one.received, 0n);
    const unattributed = ofAsset.reduce((sum, one) => sum + one.unattributed, 0n);
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
      upToBlock: ofAsset.length === 0 ? null : Math.max(...ofAsset.map(({ toBlock }) => toBlock)),
      balanced:
        isBalanced(sums) && received === sums.charged - sums.missing + unattributed - sums.unconfirmed,
    };
  });
}

const isSame = (a: Asset, b: Asset): boolean => a.network === b.network && a.asset === b.asset;
