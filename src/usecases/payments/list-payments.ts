// The payments of a log: those that are open, by one read of the whole log, and all.

import { evolveEntry, NO_ENTRY, openState } from '#src/domain/payment/ledger.ts';
import type { Clock } from '#src/ports/clock.ts';
import type { EventLog } from '#src/ports/event-log.ts';
import { paymentHistories } from './payment-histories.ts';
import { type PaymentRow, paymentRow } from './payment-row.ts';
import { type Ledger, readLedger } from './read-ledger.ts';

type ListPaymentsDeps = { readonly log: EventLog; readonly clock: Pick<Clock, 'now'> };

/** Open payments, the longest open first. Keeps only these in memory. Throws for an event that it cannot read. */
export const listOpenPayments = async ({ log, clock }: ListPaymentsDeps): Promise<readonly PaymentRow[]> =>
  openPayments(await readLedger(log), clock.now());

/** The same of a ledger that was read. `nowMs`: Unix ms. */
export function openPayments({ entries }: Ledger, nowMs: number): readonly PaymentRow[] {
  const rows: PaymentRow[] = [];
  for (const [id, entry] of entries) {
    const row = openState(entry, nowMs) === null ? null : paymentRow(id, entry, nowMs);
    if (row !== null) rows.push(row);
  }
  return rows.sort((a, b) => (a.since < b.since ? -1 : a.since > b.since ? 1 : 0));
}

/** Every payment, in the order of their first reservations. See `paymentHistories`. */
export async function* listAllPayments({ log, clock }: ListPaymentsDeps): AsyncGenerator<PaymentRow> {
  for await (const { id, events } of paymentHistories(log)) {
    const row = paymentRow(id, events.reduce(evolveEntry, NO_ENTRY), clock.now());
    if (row !== null) yield row;
  }
}
