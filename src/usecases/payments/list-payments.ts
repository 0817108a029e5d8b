// The payments of a log: those that are open, and all.
import { evolveEntry, NO_ENTRY, openState } from '#src/domain/payment/ledger.ts';
import type { Clock } from '#src/ports/clock.ts';
import type { EventLog } from '#src/ports/event-log.ts';
import { paymentHistories } from './payment-histories.ts';
import { type PaymentRow, paymentRow } from './payment-row.ts';
import type { Ledger } from './read-ledger.ts';

/** Open payments, the longest open first. `nowMs`: Unix ms. */
export function openPayments({ entries }: Pick<Ledger, 'entries'>, nowMs: number): readonly PaymentRow[] {
  const rows: PaymentRow[] = [];
  for (const [id, entry] of entries) {
    const row = openState(entry, nowMs) === null ? null : paymentRow(id, entry, nowMs);
    if (row !== null) rows.push(row);
  }
  return rows.sort((a, b) => (a.since < b.since ? -1 : a.since > b.since ? 1 : 0));
}

/** Every payment, in the order of their first reservations. See `paymentHistories`. */
export async function* listAllPayments({
  log,
  clock,
}: {
  readonly log: EventLog;
  readonly clock: Pick<Clock, 'now'>;
}): AsyncGenerator<PaymentRow> {
  for await (const { id, events } of paymentHistories(log)) {
    const row = paymentRow(id, events.reduce(evolveEntry, NO_ENTRY), clock.now());
    if (row !== null) yield row;
  }
}
