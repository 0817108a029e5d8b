// Which payments an operator has to look after, from the log alone, read once from its beginning.
import type { DomainEvent } from '../domain/events.ts';
import {
  evolveEntry,
  type LedgerEntry,
  type LedgerEvent,
  type OpenState,
  openState,
} from '../domain/payment/ledger.ts';
import { decodeEvent, type RecordedEvent } from '../domain/recorded.ts';
import type { Clock } from '../ports/clock.ts';
import type { EventLog } from '../ports/event-log.ts';

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

const TYPES = [
  'PaymentReserved',
  'PaymentSettled',
  'PaymentRejected',
  'PaymentReleased',
  'SettlementUnknown',
  'SettlementRetried',
  'JobStarted',
  'JobCompleted',
] as const satisfies readonly LedgerEvent['type'][];

const PAGE = 512;

/** The longest open first. Holds the open payments in memory and nothing else. Throws for an event it cannot read. */
export async function listPayments(
  { log, clock }: ListPaymentsDeps,
  states: ReadonlySet<OpenState>,
): Promise<readonly OpenPayment[]> {
  const open = openPayments();
  for (let after: string | null = null; ; ) {
    const page = await log.readAll({ after, max: PAGE, filter: { types: TYPES } });
    for (const recorded of page) open.add(recorded);
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

function openPayments() {
  const entries = new Map<string, LedgerEntry>();
  /** A job's later events name the job alone. */
  const streams = new Map<string, string>();
  return {
    entries,
    add(recorded: RecordedEvent): void {
      const event = ledgerEvent(recorded);
      const { jobId } = event.data;
      const stream = event.type.startsWith('Job') ? streams.get(jobId) : recorded.stream;
      if (stream === undefined) return;
      const before = entries.get(stream) ?? null;
      const entry = evolveEntry(before, event);
      if (entry === before) return;
      if (before !== null) streams.delete(before.payment.reserved.jobId);
      if (entry === null) entries.delete(stream);
      else {
        entries.set(stream, entry);
        streams.set(entry.payment.reserved.jobId, stream);
      }
    },
  };
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
