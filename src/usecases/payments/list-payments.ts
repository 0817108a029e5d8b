// Which payments an operator has to look after, from the log alone, read once from its beginning.

import { decodeEvent, type RecordedEvent } from '#src/domain/event-codec.ts';
import { type DomainEvent, type PaymentEvent, typesIn } from '#src/domain/events.ts';
import {
  evolveEntry,
  type LedgerEntry,
  type LedgerEvent,
  type OpenState,
  openState,
  reopenedEntry,
} from '#src/domain/payment/ledger.ts';
import type { Clock } from '#src/ports/clock.ts';
import type { EventLog } from '#src/ports/event-log.ts';

export type ListPaymentsDeps = { readonly log: EventLog; readonly clock: Pick<Clock, 'now'> };

export type OpenPayment = {
  /** Name of the payment's stream. */
  readonly id: string;
  readonly state: OpenState;
  readonly payer: string;
  /** Atomic units. */
  readonly amount: string;
  /** null: none yet, or none that anybody could name. */
  readonly transaction: string | null;
  readonly jobId: string;
  readonly since: string;
};

const TYPES = [...typesIn('payment'), 'JobStarted', 'JobCompleted'];

const PAGE = 512;

/** The longest open first. Holds the open payments in memory and nothing else. Throws for an event it cannot read. */
export async function listPayments(
  { log, clock }: ListPaymentsDeps,
  states: ReadonlySet<OpenState>,
): Promise<readonly OpenPayment[]> {
  const open = openPayments(log);
  for (let after: string | null = null; ; ) {
    const page = await log.readAll({ after, max: PAGE, filter: { types: TYPES } });
    for (const recorded of page) await open.add(recorded);
    after = page.at(-1)?.position ?? null;
    if (page.length < PAGE) break;
  }
  const rows: OpenPayment[] = [];
  for (const [id, entry] of open.entries) {
    const state = openState(entry, clock.now());
    if (state !== null && states.has(state)) rows.push(rowOf(id, state, entry));
  }
  return rows.sort((a, b) => (a.since < b.since ? -1 : a.since > b.since ? 1 : 0));
}

function openPayments(log: EventLog) {
  const entries = new Map<string, LedgerEntry>();
  /** A job's later events name the job alone. */
  const streams = new Map<string, string>();
  const put = (stream: string, before: LedgerEntry | null, entry: LedgerEntry | null) => {
    if (before !== null) streams.delete(before.payment.reserved.jobId);
    if (entry === null) entries.delete(stream);
    else {
      entries.set(stream, entry);
      streams.set(entry.payment.reserved.jobId, stream);
    }
  };
  return {
    entries,
    async add(recorded: RecordedEvent): Promise<void> {
      const event = ledgerEvent(recorded);
      const ofJob = event.type === 'JobStarted' || event.type === 'JobCompleted';
      const stream = ofJob ? streams.get(event.data.jobId) : recorded.stream;
      if (stream === undefined) return;
      const before = entries.get(stream) ?? null;
      // What ended was forgotten: a settlement that came to light later is rare, and read from its stream.
      const late = before === null && event.type === 'PaymentSettled';
      const entry = late ? reopenedEntry(await historyOf(log, recorded)) : evolveEntry(before, event);
      if (entry !== before) put(stream, before, entry);
    },
  };
}

/** The payment's events up to this one. */
async function historyOf(log: EventLog, { stream, revision }: RecordedEvent): Promise<PaymentEvent[]> {
  const events = await log.readStream(stream, { max: Number(revision) + 1 });
  return events
    .map(ledgerEvent)
    .filter((event) => event.type !== 'JobStarted' && event.type !== 'JobCompleted');
}

function ledgerEvent(recorded: RecordedEvent): LedgerEvent {
  const event = decodeEvent(recorded);
  if (event === null || !isLedgerEvent(event))
    throw new Error(`an event of ${recorded.stream} cannot be read: ${recorded.type} ${recorded.revision}`);
  return event;
}

const isLedgerEvent = (event: DomainEvent): event is LedgerEvent => TYPES.some((type) => type === event.type);

function rowOf(id: string, state: OpenState, { payment, since }: LedgerEntry): OpenPayment {
  const { payer, amount, jobId } = payment.reserved;
  const transaction = payment.status === 'settled' ? payment.settled.transaction : null;
  return { id, state, payer, amount, transaction, jobId, since };
}
