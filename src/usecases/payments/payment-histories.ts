// Every payment of a log with its own events and those of its job.
import type { LedgerEvent } from '#src/domain/payment/ledger.ts';
import type { EventLog } from '#src/ports/event-log.ts';
import { readHistory } from '#src/usecases/process/fold-ledger.ts';

/** `id`: name of the payment's stream. `events`: in the order of the log. */
export type PaymentEvents = { readonly id: string; readonly events: readonly LedgerEvent[] };

/** A payment's stream begins with one of them. */
const FIRST = ['PaymentReserved', 'PaymentDeferred'];
/** Payments whose streams are read at the same time. */
const CONCURRENT = 32;

/**
 * In the order of their first events. Keeps some payments in memory, however long the log is: the streams of each
 * payment and of its jobs are read. Throws for an event that it cannot read.
 */
export async function* paymentHistories(log: EventLog): AsyncGenerator<PaymentEvents> {
  for (let after: string | null = null; ; ) {
    const page = await log.readAll({ after, max: CONCURRENT, types: FIRST });
    const ids = page.filter(({ revision }) => revision === 0n).map(({ stream }) => stream);
    yield* await Promise.all(ids.map(async (id) => ({ id, events: await readHistory(log, id) })));
    after = page.at(-1)?.position ?? null;
    if (page.length < CONCURRENT) return;
  }
}
