// The payments that need an operator's attention: one read of the whole event log.

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
  const open = await readLedger(log);
  const rows: OpenPayment[] = [];
  for (const [id, entry] of open.entries) {
    const state = openState(entry, clock.now());
    if (state !== null && states.has(state)) rows.push(rowOf(id, state, entry));
  }
  return rows.sort((a, b) => (a.since < b.since ? -1 : a.since > b.since ? 1 : 0));
}

/** Amounts in atomic units of one asset. */
export type Balance = {
  readonly network: string;
  readonly asset: string;
  readonly charged: string;
  readonly served: string;
  readonly refunded: string;
  /** Charged, and neither served nor refunded: unserved, refundable or running. */
  readonly open: string;
  /** charged = served + refunded + open. */
  readonly balanced: boolean;
};

/** One row for each asset that was charged or refunded. Throws for an event that it cannot read. */
export async function balancePayments(log: EventLog): Promise<readonly Balance[]> {
  const { books, entries } = await readLedger(log);
  for (const { payment } of entries.values())
    if (payment.status === 'settled') books.of(payment.reserved).open += BigInt(payment.reserved.amount);
  return [...books.all()].map(({ network, asset, charged, served, refunded, open }) => ({
    network,
    asset,
    charged: String(charged),
    served: String(served),
    refunded: String(refunded),
    open: String(open),
    balanced: served >= 0n && charged === served + refunded + open,
  }));
}

async function readLedger(log: EventLog) {
  const ledger = openPayments(log);
  for (let after: string | null = null; ; ) {
    const page = await log.readAll({ after, max: PAGE, filter: { types: TYPES } });
    for (const recorded of page) await ledger.add(recorded);
    after = page.at(-1)?.position ?? null;
    if (page.length < PAGE) return ledger;
  }
}

type Money = { readonly network: string; readonly asset: string };
type Sums = Money & { charged: bigint; served: bigint; refunded: bigint; open: bigint };

function makeBooks() {
  const sums = new Map<string, Sums>();
  return {
    all: () => sums.values(),
    of({ network, asset }: Money): Sums {
      const name = `${network} ${asset}`;
      const known = sums.get(name) ?? { network, asset, charged: 0n, served: 0n, refunded: 0n, open: 0n };
      sums.set(name, known);
      return known;
    },
  };
}

/** Adds the change of one event: `before` and `after` are the payment's entry, null if it is not open. */
function enter(
  books: ReturnType<typeof makeBooks>,
  event: LedgerEvent,
  before: LedgerEntry | null,
  after: LedgerEntry | null,
): void {
  if (event.type === 'PaymentRefunded') {
    const [sums, amount] = [books.of(event.data), BigInt(event.data.amount)];
    sums.refunded += amount;
    // A payment without an open entry was served before it was refunded.
    if (before === null) sums.served -= amount;
    return;
  }
  const [was, is] = [settledOf(before), settledOf(after)];
  if (was === null && is !== null) books.of(is).charged += BigInt(is.amount);
  if (was !== null && is === null) books.of(was).served += BigInt(was.amount);
}

const settledOf = (entry: LedgerEntry | null) =>
  entry?.payment.status === 'settled' ? entry.payment.reserved : null;

function openPayments(log: EventLog) {
  const books = makeBooks();
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
    books,
    async add(recorded: RecordedEvent): Promise<void> {
      const event = ledgerEvent(recorded);
      const ofJob = event.type === 'JobStarted' || event.type === 'JobCompleted';
      const stream = ofJob ? streams.get(event.data.jobId) : recorded.stream;
      if (stream === undefined) return;
      const before = entries.get(stream) ?? null;
      // Entries of ended payments are deleted: a settlement that is found later is rare, and is read from its stream.
      const late = before === null && event.type === 'PaymentSettled';
      const entry = late ? reopenedEntry(await historyOf(log, recorded)) : evolveEntry(before, event);
      enter(books, event, before, entry);
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
  const { payer, network, asset, amount, jobId } = payment.reserved;
  const transaction = payment.status === 'settled' ? payment.settled.transaction : null;
  return { id, state, payer, network, asset, amount, transaction, jobId, since };
}
