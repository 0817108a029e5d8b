// The ledger: the payments of an event log that are open, the charges that no comparison with the chain has confirmed yet,
// and the sums of all of them.
import type { RecordedEvent } from '#src/domain/event-codec.ts';
import { type ChainReconciled, chainAccount, type PaymentReserved } from '#src/domain/events/payment.ts';
import { claimedTime, type EventOf, STREAM } from '#src/domain/events.ts';
import {
  type Books,
  enter,
  evolveEntry,
  isOpen,
  LEDGER_TYPES,
  type LedgerEntry,
  type LedgerEvent,
  type MoneyPaid,
  NO_ENTRY,
} from '#src/domain/payment/ledger.ts';
import {
  accountKey,
  addRound,
  type ChainAccount,
  type ChainBooks,
  type ChargeTimes,
  isCharged,
} from '#src/domain/payment/reconciliation.ts';
import { isSelfPaid, type Payment } from '#src/domain/payment/state.ts';
import type { EventLog } from '#src/ports/event-log.ts';
import { eventIn, eventsOf } from '#src/usecases/process/read-events.ts';
import { load, PAYMENT } from '#src/usecases/process/stream.ts';
import { readHistory } from './payment-histories.ts';

/** A charge whose transfer is in no block that was compared so far. */
export type UnconfirmedCharge = ChargeTimes & {
  readonly account: ChainAccount;
  readonly amount: bigint;
  readonly transaction: string | null;
};

export type RefusedPayment = Pick<PaymentReserved, 'validBefore'> & { readonly account: ChainAccount };

/** The comparison with the chain of one account. */
export type Comparison = {
  readonly books: ChainBooks;
  /** Of its last round in the stream. */
  readonly revision: bigint;
};

export type Ledger = {
  /** Open payments by stream; the newest are left out while there are more than the limit. */
  readonly entries: ReadonlyMap<string, LedgerEntry>;
  /** By the payment's stream. */
  readonly unconfirmed: ReadonlyMap<string, UnconfirmedCharge>;
  /** Payments that ended by the facilitator's refusal, by stream: the chain is asked once more, and they are deleted. */
  readonly refused: Map<string, RefusedPayment>;
  readonly books: Books;
  /** By the key of the account. */
  readonly comparisons: ReadonlyMap<string, Comparison>;
  /** Last revision of each stream of comparisons. */
  readonly revisions: ReadonlyMap<string, bigint>;
  /** By the key of the account: when its first payment was reserved, or bound to a run, Unix ms. */
  readonly firstReserved: ReadonlyMap<string, number>;
  /** Reads the events that the log has beyond those that were read. Throws for an event that it cannot read. */
  catchUp(betweenPages?: () => Promise<void>): Promise<void>;
};

const TYPES = [...LEDGER_TYPES, 'ChainReconciled'] as const;

/** One read of the whole event log. */
export async function readLedger(log: EventLog): Promise<Ledger> {
  const ledger = openLedger(log);
  await ledger.catchUp();
  return ledger;
}

/**
 * Empty until it catches up. `maxEntries`: of what is open beyond it, only the names are kept until there is room; then
 * their streams are read again.
 */
export function openLedger(log: EventLog, maxEntries = Number.POSITIVE_INFINITY): Ledger {
  const payments = openPayments(log, maxEntries);
  const chains = openComparisons(log, payments.charges);
  let after: string | null = null;
  return {
    entries: payments.entries,
    unconfirmed: payments.unconfirmed,
    refused: payments.refused,
    firstReserved: payments.firstReserved,
    comparisons: chains.comparisons,
    revisions: chains.revisions,
    get books() {
      return payments.books();
    },
    async catchUp(betweenPages) {
      for await (const { recorded, event } of eventsOf(log, TYPES, after, betweenPages)) {
        if (event.type === 'ChainReconciled') await chains.add(recorded, event);
        else await payments.add(recorded, event);
        after = recorded.position;
      }
      if (after !== null) await payments.fill(after);
    },
  };
}

function openPayments(log: EventLog, maxEntries: number) {
  let books: Books = [];
  const entries = new Map<string, LedgerEntry>();
  /** Streams of the open payments that are not kept. */
  const leftOut = new Set<string>();
  const unconfirmed = new Map<string, UnconfirmedCharge>();
  const refused = new Map<string, RefusedPayment>();
  const firstReserved = new Map<string, number>();
  const terms = new Map<string, Pick<UnconfirmedCharge, 'account' | 'amount'>>();
  /** The stream of each open payment: a job's later events name the job alone. */
  const streams = new Map<string, string>();
  /** What the running jobs were paid with. */
  const paidWith = new Map<string, MoneyPaid>();

  /** One object for all charges of the same terms: there may be many. */
  function termsOf({ network, asset, payTo: payee, amount }: PaymentReserved) {
    const key = `${accountKey({ network, asset, payee })} ${amount}`;
    const known = terms.get(key) ?? { account: { network, asset, payee }, amount: BigInt(amount) };
    terms.set(key, known);
    return known;
  }

  const charges = {
    /** The charge of this payment, unless it is none, missing or the payee's own, is unconfirmed from now on. */
    unconfirm(stream: string, payment: Payment): void {
      unconfirmed.delete(stream);
      if (!('settled' in payment) || !isCharged(payment) || isSelfPaid(payment.reserved)) return;
      const { transaction, settledAt } = payment.settled;
      unconfirmed.set(stream, {
        ...termsOf(payment.reserved),
        transaction,
        settledAt: Date.parse(settledAt),
        validBefore: payment.reserved.validBefore,
      });
    },
    confirm: (stream: string) => unconfirmed.delete(stream),
  };

  return {
    entries,
    unconfirmed,
    refused,
    firstReserved,
    charges,
    books: () => books,
    /** Keeps the oldest of those that were left out, if there is room for many. */
    async fill(position: string): Promise<void> {
      for (const stream of entries.size < maxEntries / 2 ? leftOut : []) {
        if (entries.size >= maxEntries) return;
        entries.set(stream, await entryAt(log, stream, (event) => event.position <= position));
        leftOut.delete(stream);
      }
    },
    async add(recorded: RecordedEvent, event: LedgerEvent): Promise<void> {
      const { jobId } = event.data;
      const ofJob = event.type === 'JobStarted' || event.type === 'JobCompleted';
      if (event.type === 'JobStarted' && event.data.payment !== null) paidWith.set(jobId, event.data.payment);
      if (event.type === 'PaymentReserved' || event.type === 'PaymentDeferred')
        noteFirst(firstReserved, event);
      const stream = ofJob ? streams.get(jobId) : recorded.stream;
      const isBefore = ({ position }: RecordedEvent) => position < recorded.position;
      // Events that can change a payment that is not open are rare: its streams are read for them.
      const isElsewhere = stream !== undefined && (leftOut.has(stream) || CHANGES_CLOSED.has(event.type));
      const before =
        entries.get(stream ?? '') ?? (isElsewhere ? await entryAt(log, stream, isBefore) : NO_ENTRY);
      const after = evolveEntry(before, event);
      books = enter(books, event, before, after, paidWith.get(jobId) ?? null);
      if (event.type === 'JobCompleted') paidWith.delete(jobId);
      if (stream === undefined || after === before || after.payment.status === 'absent') return;
      if (isCharged(before.payment) !== isCharged(after.payment)) charges.unconfirm(stream, after.payment);
      const { reserved } = after.payment;
      if (event.type === 'PaymentRejected' && event.data.evidence === 'facilitator')
        refused.set(stream, { account: termsOf(reserved).account, validBefore: reserved.validBefore });
      else refused.delete(stream);
      const name = reserved.jobId;
      if (!isOpen(after)) {
        entries.delete(stream);
        leftOut.delete(stream);
        streams.delete(name);
        return;
      }
      streams.set(name, stream);
      if (entries.has(stream) || (entries.size < maxEntries && !leftOut.has(stream)))
        entries.set(stream, after);
      else leftOut.add(stream);
    },
  };
}

function noteFirst(first: Map<string, number>, event: EventOf<'PaymentReserved' | 'PaymentDeferred'>): void {
  const key = accountKey({ ...event.data, payee: event.data.payTo });
  if (!first.has(key)) first.set(key, Date.parse(claimedTime(event)));
}

function openComparisons(log: EventLog, charges: ReturnType<typeof openPayments>['charges']) {
  const comparisons = new Map<string, Comparison>();
  const revisions = new Map<string, bigint>();

  /** The books of the rounds that stand before this one. The payments of those that it replaces are unconfirmed again. */
  async function booksBefore(
    revision: bigint,
    { data }: EventOf<'ChainReconciled'>,
  ): Promise<ChainBooks | null> {
    let books: ChainBooks | null = null;
    for await (const round of standingRounds(log, data, revision - 1n)) {
      if (round.toBlock < data.fromBlock) books = addRound(books, round);
      else
        for (const hash of round.confirmed) {
          const name = STREAM.payment(hash);
          charges.unconfirm(name, (await load({ log }, PAYMENT, name)).state);
        }
    }
    return books;
  }

  return {
    comparisons,
    revisions,
    async add(recorded: RecordedEvent, event: EventOf<'ChainReconciled'>): Promise<void> {
      const { stream, revision } = recorded;
      const key = accountKey(event.data);
      const known = comparisons.get(key)?.books ?? null;
      const replaces = known !== null && event.data.fromBlock <= known.toBlock;
      const before = replaces ? await booksBefore(revision, event) : known;
      comparisons.set(key, { books: addRound(before, event.data), revision });
      revisions.set(stream, revision);
      for (const hash of event.data.confirmed) charges.confirm(STREAM.payment(hash));
    },
  };
}

/** The entry of a payment after those of its events, and of its jobs', that `counts` returns true for. */
const entryAt = async (log: EventLog, stream: string, counts: (event: RecordedEvent) => boolean) =>
  (await readHistory(log, stream, counts)).reduce(evolveEntry, NO_ENTRY);

const CHANGES_CLOSED: ReadonlySet<string> = new Set([
  'PaymentSettled',
  'PaymentMissing',
  'RefundBegun',
  'PaymentRefunded',
  'SettlementCorrected',
]);

// ── the rounds of a comparison with the chain that no later round replaced ──────────────────────────

const PAGE = 256;

/**
 * The newest first, up to this revision, in constant memory. A round stands if each newer one that stands begins after its
 * last block. Throws for an event that it cannot read.
 */
export async function* standingRounds(
  log: EventLog,
  account: ChainAccount,
  upTo?: bigint,
): AsyncGenerator<ChainReconciled, void, undefined> {
  const [stream, key] = [STREAM.chain(chainAccount(account)), accountKey(account)];
  let next = upTo;
  let before = Number.POSITIVE_INFINITY;
  for (;;) {
    const from = next === undefined ? {} : { from: next };
    const page = await log.readStream(stream, { ...from, direction: 'backwards', max: PAGE });
    for (const recorded of page) {
      const { type, data } = eventIn(recorded);
      if (type !== 'ChainReconciled' || accountKey(data) !== key || data.toBlock >= before) continue;
      before = data.fromBlock;
      yield data;
    }
    const last = page.at(-1)?.revision ?? 0n;
    if (last === 0n) return;
    next = last - 1n;
  }
}
