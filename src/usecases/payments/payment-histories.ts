// Every payment of a log with its own events and those of its job.
import { decodeEvent, type RecordedEvent } from '#src/domain/event-codec.ts';
import { isJobEvent, isPaymentEvent, STREAM } from '#src/domain/events.ts';
import { evolveEntry, type LedgerEvent, NO_ENTRY } from '#src/domain/payment/ledger.ts';
import type { EventLog } from '#src/ports/event-log.ts';

/** `id`: name of the payment's stream. `events`: in the order of the log. */
export type PaymentHistory = { readonly id: string; readonly events: readonly LedgerEvent[] };

const PAGE = 256;
/** Payments whose streams are read at the same time. */
const CONCURRENT = 32;

/**
 * In the order of their first reservations. Keeps one page of payments in memory, however long the log is: the streams of
 * each payment and of its job are read. Throws for an event that it cannot read.
 */
export async function* paymentHistories(log: EventLog): AsyncGenerator<PaymentHistory> {
  for (let after: string | null = null; ; ) {
    const page = await log.readAll({ after, max: PAGE, types: ['PaymentReserved'] });
    const ids = page.filter(({ revision }) => revision === 0n).map(({ stream }) => stream);
    for (let from = 0; from < ids.length; from += CONCURRENT)
      yield* await Promise.all(ids.slice(from, from + CONCURRENT).map((id) => readHistory(log, id)));
    after = page.at(-1)?.position ?? null;
    if (page.length < PAGE) return;
  }
}

async function readHistory(log: EventLog, id: string): Promise<PaymentHistory> {
  const recorded = await log.readStream(id);
  const { payment } = recorded.map(ledgerEvent).reduce(evolveEntry, NO_ENTRY);
  const job = payment.status === 'absent' ? [] : await log.readStream(STREAM.job(payment.reserved.jobId));
  // The two streams were written by turns.
  const all = [...recorded, ...job.filter(({ type }) => type === 'JobStarted' || type === 'JobCompleted')];
  return { id, events: all.sort(byPosition).map(ledgerEvent) };
}

const byPosition = (a: RecordedEvent, b: RecordedEvent): number => (a.position < b.position ? -1 : 1);

function ledgerEvent(recorded: RecordedEvent): LedgerEvent {
  const event = decodeEvent(recorded);
  if (event !== null && isPaymentEvent(event)) return event;
  if (event !== null && isJobEvent(event) && (event.type === 'JobStarted' || event.type === 'JobCompleted'))
    return event;
  throw new Error(`an event of ${recorded.stream} cannot be read: ${recorded.type} ${recorded.revision}`);
}
