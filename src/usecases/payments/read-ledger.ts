// The ledger: the payments of an event log that are open, and the sums of all of them.

import { decodeEvent, type RecordedEvent } from '#src/domain/event-codec.ts';
import { type DomainEvent, typesIn } from '#src/domain/events.ts';
import {
  type Books,
  enter,
  evolveEntry,
  isOpen,
  type LedgerEntry,
  type LedgerEvent,
  type Money,
  NO_ENTRY,
} from '#src/domain/payment/ledger.ts';
import { absentPayment, evolvePayment } from '#src/domain/payment/state.ts';
import type { EventLog } from '#src/ports/event-log.ts';

const TYPES = [...typesIn('payment'), 'JobStarted', 'JobCompleted'];

const PAGE = 512;

/** One read of the whole event log. Keeps the open payments in memory. Throws for an event that it cannot read. */
export async function readLedger(log: EventLog) {
  const ledger = openLedger(log);
  for (let after: string | null = null; ; ) {
    const page = await log.readAll({ after, max: PAGE, types: TYPES });
    for (const recorded of page) await ledger.add(recorded);
    after = page.at(-1)?.position ?? null;
    if (page.length < PAGE) return ledger;
  }
}

function openLedger(log: EventLog) {
  let books: Books = [];
  const entries = new Map<string, LedgerEntry>();
  /** The stream of each open payment: a job's later events name the job alone. */
  const streams = new Map<string, string>();
  /** What the running jobs were paid with. */
  const paidWith = new Map<string, Money>();
  return {
    entries,
    get books() {
      return books;
    },
    async add(recorded: RecordedEvent): Promise<void> {
      const event = ledgerEvent(recorded);
      const { jobId } = event.data;
      const ofJob = event.type === 'JobStarted' || event.type === 'JobCompleted';
      if (event.type === 'JobStarted' && event.data.payment !== null) paidWith.set(jobId, event.data.payment);
      const stream = ofJob ? streams.get(jobId) : recorded.stream;
      const before = (stream !== undefined && entries.get(stream)) || (await entryBefore(log, recorded));
      const after = evolveEntry(before, event);
      books = enter(books, event, before, after, paidWith.get(jobId) ?? null);
      if (event.type === 'JobCompleted') paidWith.delete(jobId);
      if (stream === undefined || after === before || after.payment.status === 'absent') return;
      const name = after.payment.reserved.jobId;
      if (isOpen(after)) {
        entries.set(stream, after);
        streams.set(name, stream);
      } else {
        entries.delete(stream);
        streams.delete(name);
      }
    },
  };
}

/** Of a payment that is not open. Events that can change it are rare: its stream is read for them. */
async function entryBefore(log: EventLog, { stream, revision, type }: RecordedEvent): Promise<LedgerEntry> {
  if (!CHANGES_CLOSED.has(type)) return NO_ENTRY;
  const payment = (await log.readStream(stream, { max: Number(revision) + 1 }))
    .slice(0, -1)
    .map(ledgerEvent)
    .filter((event) => event.type !== 'JobStarted' && event.type !== 'JobCompleted')
    .reduce(evolvePayment, absentPayment);
  return { payment, job: payment.status === 'settled' ? 'executed' : 'absent', since: '' };
}

const CHANGES_CLOSED: ReadonlySet<string> = new Set([
  'PaymentSettled',
  'PaymentMissing',
  'RefundBegun',
  'PaymentRefunded',
]);

function ledgerEvent(recorded: RecordedEvent): LedgerEvent {
  const event = decodeEvent(recorded);
  if (event === null || !isLedgerEvent(event))
    throw new Error(`an event of ${recorded.stream} cannot be read: ${recorded.type} ${recorded.revision}`);
  return event;
}

const isLedgerEvent = (event: DomainEvent): event is LedgerEvent => TYPES.some((type) => type === event.type);
