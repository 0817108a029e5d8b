// Gauges of payments: the books, what the chain has of them, and what is open. Absent in demo mode.
import type { Gauge } from 'prom-client';
import type { PaymentFigures } from '#src/ports/telemetry.ts';

type MakeGauge = (name: string, help: string, labelNames?: string[]) => Gauge<string>;

export function paymentGauges(gauge: MakeGauge) {
  const sums = gauge(
    'relay_payment_units',
    'Sums of the books in atomic units of the asset: charged = served + refunded + open, and received = charged - missing + unattributed, up to the last block compared; corrected: charged, and on the chain in another transaction than was recorded.',
    ['sum'],
  );
  const balance = gauge(
    'relay_payments_balanced',
    'Whether the sums of the books balance, also with the chain: 1 or 0.',
  );
  const open = gauge('relay_payments_open', 'Payments that are open, by state.', ['state']);
  const openUnits = gauge('relay_payments_open_units', 'Their amounts, in atomic units.', ['state']);
  const oldest = gauge(
    'relay_payments_open_oldest_seconds',
    'How long the oldest of them has been in this state; 0 without one.',
    ['state'],
  );
  const block = gauge('relay_chain_reconciled_block', 'The last block that was compared with the books.');
  const blockTime = gauge(
    'relay_chain_reconciled_timestamp_seconds',
    'Time of that block, Unix time; 0 before the first comparison.',
  );
  function showPayments({ units, balanced, open: states, reconciled }: PaymentFigures): void {
    for (const [sum, value] of Object.entries(units)) sums.set({ sum }, value);
    balance.set(Number(balanced));
    for (const [state, figures] of Object.entries(states)) {
      open.set({ state }, figures.payments);
      openUnits.set({ state }, figures.units);
      oldest.set({ state }, figures.oldestSeconds);
    }
    if (reconciled !== null) block.set(reconciled.block);
    blockTime.set(reconciled?.timeSeconds ?? 0);
  }

  for (const one of [balance, block, blockTime]) one.remove();
  return (payments: PaymentFigures | null): void => {
    if (payments !== null) showPayments(payments);
  };
}
