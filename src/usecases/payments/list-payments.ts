// The payments that need an operator's attention: one read of the whole event log.

import { decodeEvent, type RecordedEvent } from '#src/domain/event-codec.ts';
import { type DomainEvent, typesIn } from '#src/domain/events.ts';
import type { PaymentReserved } from '#src/domain/payment/events.ts';
import {
  evolveEntry,
  type LedgerEntry,
  type LedgerEvent,
  NO_ENTRY,
  type OpenState,
  openState,
} from '#src/domain/payment/ledger.ts';
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

/** Open payments, the longest open first. Throws for an event that it cannot read. */
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

/** charged = served + refunded + open, in atomic units. */
type Balance = Asset & { readonly [K in 'charged' | Part]: string };
type Asset = Pick<PaymentReserved, 'network' | 'asset'>;
type Part = 'served' | 'refunded' | 'open';

/** One row for each asset that was charged. Throws for an event that it cannot read. */
export async function balancePayments(log: EventLog): Promise<readonly Balance[]> {
  const { entries, sums, add } = await readLedger(log);
  for (const { payment } of entries.values()) {
    if (payment.status === 'settled') add('open', payment.reserved, 1n);
    if (payment.status === 'refunded') add('refunded', payment.reserved, 1n);
  }
  return [...sums.values()].map(({ network, asset, served, refunded, open }) => ({
    network,
    asset,
    charged: String(served + refunded + open),
    served: String(served),
    refunded: String(refunded),
    open: String(open),
  }));
}

/** `sums`: of served payments, which are not kept among the `entries`, and of their refunds. */
async function readLedger(log: EventLog) {
  const entries = new Map<string, LedgerEntry>();
  /** The payment's stream by its job: a job's later events name the job alone. */
  const streams = new Map<string, string>();
  const sums = new Map<string, Asset & { readonly [K in Part]: bigint }>();
  const add = (
    part: Part,
    { network, asset, amount }: Asset & { readonly amount: string },
    sign: 1n | -1n,
  ) => {
    const key = `${network} ${asset}`;
    const before = sums.get(key) ?? { network, asset, served: 0n, refunded: 0n, open: 0n };
    sums.set(key, { ...before, [part]: before[part] + sign * BigInt(amount) });
  };
  const enter = (recorded: RecordedEvent) => {
    const event = ledgerEvent(recorded);
    const ofJob = event.type === 'JobStarted' || event.type === 'JobCompleted';
    const stream = ofJob ? streams.get(event.data.jobId) : recorded.stream;
    if (stream === undefined) return;
    const before = entries.get(stream);
    if (before === undefined && event.type === 'PaymentRefunded') {
      add('served', event.data, -1n);
      add('refunded', event.data, 1n);
      return;
    }
    const after = evolveEntry(before ?? NO_ENTRY, event);
    if (after.payment.status === 'absent') return;
    const { reserved } = after.payment;
    if (after.payment.status === 'settled' && after.job === 'executed') {
      add('served', reserved, 1n);
      entries.delete(stream);
      streams.delete(reserved.jobId);
    } else {
      entries.set(stream, after);
      streams.set(reserved.jobId, stream);
    }
  };
  for (let after: string | null = null; ; ) {
    const page = await log.readAll({ after, max: PAGE, types: TYPES });
    page.forEach(enter);
    after = page.at(-1)?.position ?? null;
    if (page.length < PAGE) return { entries, sums, add };
  }
}

function ledgerEvent(recorded: RecordedEvent): LedgerEvent {
  const event = decodeEvent(recorded);
  if (event === null || !isLedgerEvent(event))
    throw new Error(`an event of ${recorded.stream} cannot be read: ${recorded.type} ${recorded.revision}`);
  return event;
}

const isLedgerEvent = (event: DomainEvent): event is LedgerEvent => TYPES.some((type) => type === event.type);
