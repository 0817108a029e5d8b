// The refunds that have begun, and the transactions claimed for them: found by reading all events of these types.
import { decodeEvent } from '#src/domain/event-codec.ts';
import type { EventOf, EventType } from '#src/domain/events.ts';
import type { EventLog } from '#src/ports/event-log.ts';

/** Payment streams whose refund is neither cancelled nor recorded, the oldest first. Keeps only these in memory. */
export async function findBegunRefunds(log: EventLog): Promise<ReadonlySet<string>> {
  const begun = new Set<string>();
  for await (const { stream, event } of eventsOf(log, [
    'RefundBegun',
    'RefundCancelled',
    'PaymentRefunded',
  ])) {
    begun.delete(stream);
    if (event.type === 'RefundBegun') begun.add(stream);
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

const PAGE = 512;

/** Throws for an event that it cannot read. */
async function* eventsOf<T extends EventType>(
  log: EventLog,
  types: readonly T[],
): AsyncGenerator<{ readonly stream: string; readonly event: EventOf<T> }> {
  for (let after: string | null = null; ; ) {
    const page = await log.readAll({ after, max: PAGE, types });
    for (const recorded of page) {
      const event = decodeEvent(recorded);
      if (event === null || !isOneOf(types, event))
        throw new Error(
          `an event of ${recorded.stream} cannot be read: ${recorded.type} ${recorded.revision}`,
        );
      yield { stream: recorded.stream, event };
    }
    after = page.at(-1)?.position ?? null;
    if (page.length < PAGE) return;
  }
}

const isOneOf = <T extends EventType>(
  types: readonly T[],
  event: { readonly type: EventType },
): event is EventOf<T> => types.some((type) => type === event.type);
