// What monitoring shows of payments, from the ledger as it was last read.
import { type LedgerEntry, type OpenState, openState, type Sums } from '#src/domain/payment/ledger.ts';
import { accountKey, type ChainAccount } from '#src/domain/payment/reconciliation.ts';
import type { OpenPayments, PaymentFigures } from '#src/ports/telemetry.ts';
import { balanceOf } from '#src/usecases/payments/balance-payments.ts';
import type { Ledger } from '#src/usecases/payments/read-ledger.ts';

/** Its time grows with what is open. `nowMs`: Unix ms. */
export function paymentFigures(ledger: Ledger, account: ChainAccount, nowMs: number): PaymentFigures {
  const { network, asset } = account;
  const isIts = (sums: Sums) => sums.network === network && sums.asset.toLowerCase() === asset;
  const sums = ledger.books.find(isIts) ?? null;
  const compared = ledger.comparisons.get(accountKey(account))?.books ?? null;
  const units = {
    charged: Number(sums?.charged ?? 0n),
    served: Number(sums?.served ?? 0n),
    refunded: Number(sums?.refunded ?? 0n),
    open: Number(sums?.open ?? 0n),
    missing: Number(sums?.missing ?? 0n),
    corrected: Number(sums?.corrected ?? 0n),
    received: Number(compared?.received ?? 0n),
    unattributed: Number(compared?.unattributed ?? 0n),
  };
  return {
    units,
    balanced: balanceOf(ledger).every(({ balanced }) => balanced),
    open: openPayments(ledger.entries.values(), nowMs),
    reconciled:
      compared === null
        ? null
        : { block: compared.toBlock, timeSeconds: Date.parse(compared.blockTime) / 1000 },
  };
}

/** The same some seconds later. */
export function agedFigures(figures: PaymentFigures, seconds: number): PaymentFigures {
  const aged = (one: OpenPayments): OpenPayments =>
    one.payments === 0 ? one : { ...one, oldestSeconds: one.oldestSeconds + seconds };
  const { unserved, refundable, refunding, unknown, missing } = figures.open;
  const open = {
    unserved: aged(unserved),
    refundable: aged(refundable),
    refunding: aged(refunding),
    unknown: aged(unknown),
    missing: aged(missing),
  };
  return { ...figures, open };
}

function openPayments(
  entries: Iterable<LedgerEntry>,
  nowMs: number,
): Readonly<Record<OpenState, OpenPayments>> {
  const none = { payments: 0, units: 0, oldestSeconds: 0 };
  const open: Record<OpenState, OpenPayments> = {
    unserved: none,
    refundable: none,
    refunding: none,
    unknown: none,
    missing: none,
  };
  for (const entry of entries) {
    const state = openState(entry, nowMs);
    if (state === null || entry.payment.status === 'absent') continue;
    const { payments, units, oldestSeconds } = open[state];
    open[state] = {
      payments: payments + 1,
      units: units + Number(entry.payment.reserved.amount),
      oldestSeconds: Math.max(oldestSeconds, (nowMs - Date.parse(entry.since)) / 1000),
    };
  }
  return open;
}
