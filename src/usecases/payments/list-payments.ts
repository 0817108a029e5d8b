// The payments that need an operator's attention: one read of the whole event log.

import { decodeEvent, type RecordedEvent } from '#src/domain/event-codec.ts';
import { type DomainEvent, typesIn } from '#src/domain/events.ts';
import {
  type Books,
  enter,
  evolveEntry,
  isBalanced,
  isOpen,
  type LedgerEntry,
  type LedgerEvent,
  type Money,
  NO_ENTRY,
  type OpenState,
  openState,
  type Sums,
} from '#src/domain/payment/ledger.ts';
import { absentPayment, evolvePayment } from '#src/domain/payment/state.ts';
import type { Clock } from '#src/ports/clock.ts';
import type { EventLog } from '#src/ports/event-log.ts';

type ListPaymentsDeps = { readonly log: EventLog; readonly clock: Pick<Clock, 'now'> };

export type OpenPayment = {
  /** Name of the payment's stream. */
  readonly id: string;
  readonly state: OpenState;
  readonly payer: string;
  /** CAIP-2. */
  readonly network: string;
  readonly asset: string;
  /** Atomic units. */
  readonly amount: string;
  /** null: none yet, or its hash could not be determined. */
  readonly transaction: string | null;
  readonly jobId: string;
  readonly since: string;
};

const TYPES = [...typesIn('payment'), 'JobStarted', 'JobCompleted'];

const PAGE = 512;

/** Open payments, the longest open first. Keeps only these in memory. Throws for an event that it cannot read. */
export async function listPayments(
  { log, clock }: ListPaymentsDeps,
  states: ReadonlySet<OpenState>,
): Promise<readonly OpenPayment[]> {
  const { entries } = await readLedger(log);
  const rows: OpenPayment[] = [];
  for (const [id, entry] of entries) {
    const { payment, since } = entry;
    const state = openState(entry, clock.now());
    if (state === null || !states.has(state) || payment.status === 'absent') continue;
    const { payer, network, asset, amount, jobId } = payment.reserved;
    const transaction = payment.status === 'settled' ? payment.settled.transaction : null;
    rows.push({ id, state, payer, network, asset, amount, transaction, jobId, since });
  }
  return rows.sort((a, b) => (a.since < b.since ? -1 : a.since > b.since ? 1 : 0));
}

/** Amounts in atomic units. `balanced`: charged = served + refunded + open. */
type Balance = { readonly [K in keyof Sums]: string } & { readonly balanced: boolean };

/** One row for each asset that was charged or refunded. Throws for an event that it cannot read. */
export async function balancePayments(log: EventLog): Promise<readonly Balance[]> {
  const { books } = await readLedger(log);
  return books.map((sums) => ({
    network: sums.network,
    asset: sums.asset,
    charged: String(sums.charged),
    served: String(sums.served),
    refunded: String(sums.refunded),
    open: String(sums.open),
    balanced: isBalanced(sums),
  }));
}

async function readLedger(log: EventLog) {
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
  if (type !== 'PaymentSettled' && type !== 'PaymentRefunded') return NO_ENTRY;
  const payment = (await log.readStream(stream, { max: Number(revision) + 1 }))
    .slice(0, -1)
    .map(ledgerEvent)
    .filter((event) => event.type !== 'JobStarted' && event.type !== 'JobCompleted')
    .reduce(evolvePayment, absentPayment);
  return { payment, job: payment.status === 'settled' ? 'executed' : 'absent', since: '' };
}

function ledgerEvent(recorded: RecordedEvent): LedgerEvent {
  const event = decodeEvent(recorded);
  if (event === null || !isLedgerEvent(event))
    throw new Error(`an event of ${recorded.stream} cannot be read: ${recorded.type} ${recorded.revision}`);
  return event;
}

const isLedgerEvent = (event: DomainEvent): event is LedgerEvent => TYPES.some((type) => type === event.type);
