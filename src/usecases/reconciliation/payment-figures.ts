// What monitoring shows of payments, from the ledger as it was last read.
import { type Ledger, noSums, type OpenState, openState } from '#src/domain/payment/ledger.ts';
import { accountKey, type ChainAccount } from '#src/domain/payment/reconciliation.ts';
import type { OpenPayments, PaymentFigures } from '#src/ports/telemetry.ts';
import { balanceOf } from '#src/usecases/payments/sum-payments.ts';

/** Its time grows with what is open. `nowMs`: Unix ms. `difference`: from the chain, in units. */
export function paymentFigures(
  ledger: Ledger,
  account: ChainAccount,
  nowMs: number,
  difference: bigint,
): PaymentFigures {
  const { network, asset } = account;
  const found = ledger.books.find((sums) => sums.network === network && sums.asset.toLowerCase() === asset);
  const { charged, served, refunded, open, missing, corrected } = found ?? noSums(account);
  const compared = ledger.comparisons.get(accountKey(account)) ?? null;
  return {
    units: {
      charged: Number(charged),
      served: Number(served),
      refunded: Number(refunded),
      open: Number(open),
      missing: Number(missing),
      corrected: Number(corrected),
      received: Number(compared?.received ?? 0n),
      unattributed: Number(compared?.unattributed ?? 0n),
    },
    balanced: balanceOf(ledger).every(({ balanced }) => balanced),
    differenceUnits: Number(difference),
    open: openPayments(ledger, nowMs),
    reconciled: compared && {
      block: compared.toBlock,
      timeSeconds: Date.parse(compared.blockTime) / 1000,
    },
  };
}

type OpenFigures = PaymentFigures['open'];

/** The same some seconds later. */
export function agedFigures(figures: PaymentFigures, seconds: number): PaymentFigures {
  const { unserved, refundable, refunding, unknown, missing } = figures.open;
  const aged = (sum: OpenPayments) =>
    sum.payments === 0 ? sum : { ...sum, oldestSeconds: sum.oldestSeconds + seconds };
  const open: OpenFigures = {
    unserved: aged(unserved),
    refundable: aged(refundable),
    refunding: aged(refunding),
    unknown: aged(unknown),
    missing: aged(missing),
  };
  return { ...figures, open };
}

function openPayments({ entries }: Ledger, nowMs: number): OpenFigures {
  const none = { payments: 0, units: 0, oldestSeconds: 0 };
  const open: Record<OpenState, OpenPayments> = {
    unserved: none,
    refundable: none,
    refunding: none,
    unknown: none,
    missing: none,
  };
  for (const entry of entries.values()) {
    const { payment, since } = entry;
    const state = openState(entry, nowMs);
    if (state === null || payment.status === 'absent') continue;
    const { payments, units, oldestSeconds } = open[state];
    open[state] = {
      payments: payments + 1,
      units: units + Number(payment.reserved.amount),
      oldestSeconds: Math.max(oldestSeconds, (nowMs - Date.parse(since)) / 1000),
    };
  }
  return open;
}
