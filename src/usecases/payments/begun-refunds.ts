// The refunds that have begun, and the transactions claimed for them: found by reading all events of these types.
import type { EventLog } from '#src/ports/event-log.ts';
import { eventsOf } from '#src/usecases/event-streams.ts';

/** Payment streams whose refund is neither cancelled nor recorded, the oldest first. Keeps only these in memory. */
export async function findBegunRefunds(log: EventLog): Promise<ReadonlySet<string>> {
  const begun = new Set<string>();
  const types = ['RefundBegun', 'RefundCancelled', 'PaymentRefunded'] as const;
  for await (const { recorded, event } of eventsOf(log, types)) {
    begun.delete(recorded.stream);
    if (event.type === 'RefundBegun') begun.add(recorded.stream);
  }
  return begun;
}

/** The transaction that is claimed for each of these payment streams; those without a claim are left out. */
export async function findClaimed(
  log: EventLog,
  payments: ReadonlySet<string>,
): Promise<ReadonlyMap<string, string>> {
  const claimed = new Map<string, string>();
  for await (const { event } of eventsOf(log, ['RefundClaimed'])) {
    const { transaction, transfers, released } = event.data;
    for (const payment of released) if (claimed.get(payment) === transaction) claimed.delete(payment);
    for (const { payment } of transfers.flatMap(({ refunds }) => refunds))
      if (payments.has(payment)) claimed.set(payment, transaction);
  }
  return claimed;
}
