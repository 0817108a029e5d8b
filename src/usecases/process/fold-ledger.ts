// The ledger as a fold over the events of payments, of their jobs and of the comparisons with the chain: the same over tables
// in memory, for a command, and over the rows of the read models. A payment that is not kept is read from its streams.
import type { RecordedEvent } from '#src/domain/event-codec.ts';
import { type ChainReconciled, chainAccount, type PaymentReserved } from '#src/domain/events/payment.ts';
import { type EventOf, STREAM } from '#src/domain/events.ts';
import {
  add,
  enter,
  evolveEntry,
  isLedgerEvent,
  isOpen,
  LEDGER_TYPES,
  type LedgerEntry,
  type LedgerEvent,
  type Money,
  NO_ENTRY,
  type PaidJob,
  type RefusedPayment,
  type Sums,
  type UnconfirmedCharge,
} from '#src/domain/payment/ledger.ts';
import {
  accountKey,
  addRound,
  type ChainAccount,
  type ChainBooks,
  isCharged,
} from '#src/domain/payment/reconciliation.ts';
import { isSelfPaid } from '#src/domain/payment/state.ts';
import type { EventLog } from '#src/ports/event-log.ts';
import { eventIn } from './read-events.ts';

export const FOLDED_TYPES = [...LEDGER_TYPES, 'ChainReconciled'] as const;
export type FoldedEvent = LedgerEvent | EventOf<'ChainReconciled'>;

type Table<R> = { get(key: string): Promise<R | null>; set(key: string, row: R | null): void };

export type LedgerTables = {
  /** Open payments, by stream. */
  readonly entries: Table<LedgerEntry>;
  /** By the payment's stream. */
  readonly unconfirmed: Table<UnconfirmedCharge>;
  /** By the payment's stream. */
  readonly refused: Table<RefusedPayment>;
  /** By the job's id. */
  readonly jobs: Table<PaidJob>;
  /** By `assetKey`. */
  readonly sums: Table<Sums>;
  /** By the key of the account. */
  readonly comparisons: Table<ChainBooks>;
};

type Place = Pick<RecordedEvent, 'stream' | 'revision' | 'position'>;
type Streams = Pick<EventLog, 'readStream'>;

const assetKey = ({ network, asset }: Omit<Money, 'amount'>): string => `${network} ${asset}`;

/** Events in the order of the log, each once. Throws for an event that it cannot read. */
export async function foldLedger(
  tables: LedgerTables,
  log: Streams,
  place: Place,
  event: FoldedEvent,
): Promise<void> {
  if (event.type === 'ChainReconciled') await addComparison(tables, log, place, event);
  else await addEvent(tables, log, place, event);
}

async function addEvent(tables: LedgerTables, log: Streams, place: Place, event: LedgerEvent): Promise<void> {
  const { entries, jobs, refused } = tables;
  const { jobId } = event.data;
  const isOfJob = event.type === 'JobStarted' || event.type === 'JobCompleted';
  const job = isOfJob ? await jobs.get(jobId) : null;
  if (event.type === 'JobStarted' && event.data.payment !== null)
    jobs.set(jobId, { stream: job?.stream ?? null, paid: event.data.payment });
  const stream = isOfJob ? (job?.stream ?? null) : place.stream;
  const kept = stream === null ? null : await entries.get(stream);
  const isElsewhere = kept === null && stream !== null && CHANGES_CLOSED.has(event.type);
  const isBefore = ({ position }: RecordedEvent) => position < place.position;
  const before = isElsewhere ? await entryAt(log, stream, isBefore) : (kept ?? NO_ENTRY);
  const after = evolveEntry(before, event);
  await enterSums(tables, event, before, after, job);
  if (event.type === 'JobCompleted') await endJob(jobs, jobId, 'paid');
  if (stream === null || after === before || after.payment.status === 'absent') return;
  if (isCharged(before.payment) !== isCharged(after.payment)) await unconfirm(tables, stream, after);
  const { reserved } = after.payment;
  if (event.type === 'PaymentRejected' && event.data.evidence === 'facilitator')
    refused.set(stream, { account: accountOf(reserved), validBefore: reserved.validBefore });
  else if ((await refused.get(stream)) !== null) refused.set(stream, null);
  if (isOpen(after)) {
    const known = await jobs.get(reserved.jobId);
    if (known?.stream !== stream) jobs.set(reserved.jobId, { paid: known?.paid ?? null, stream });
    entries.set(stream, after);
    return;
  }
  if (kept !== null) entries.set(stream, null);
  await endJob(jobs, reserved.jobId, 'stream');
}

/** Events that can change a payment that is not open are rare: its streams are read for them. */
const CHANGES_CLOSED: ReadonlySet<string> = new Set([
  'PaymentSettled',
  'PaymentMissing',
  'RefundBegun',
  'PaymentRefunded',
  'SettlementCorrected',
]);

/** The job has no open payment any more (`stream`), or runs for nothing any more (`paid`). */
async function endJob(jobs: LedgerTables['jobs'], jobId: string, over: keyof PaidJob): Promise<void> {
  const job = await jobs.get(jobId);
  if (job === null) return;
  const left = { ...job, [over]: null };
  jobs.set(jobId, left.stream === null && left.paid === null ? null : left);
}

async function enterSums(
  tables: LedgerTables,
  event: LedgerEvent,
  before: LedgerEntry,
  after: LedgerEntry,
  job: PaidJob | null,
): Promise<void> {
  const paid = job?.paid ?? null;
  await changeSums(
    tables,
    [
      paid,
      event.type === 'PaymentRefunded' ? event.data : null,
      ...[before, after].map(({ payment }) => (payment.status === 'absent' ? null : payment.reserved)),
    ],
    (books) => enter(books, event, before, after, paid),
  );
}

/** `monies`: of every asset whose sums may change. */
async function changeSums(
  { sums }: LedgerTables,
  monies: readonly (Omit<Money, 'amount'> | null)[],
  change: (books: readonly Sums[]) => readonly Sums[],
): Promise<void> {
  const keys = new Set(monies.flatMap((money) => (money === null ? [] : [assetKey(money)])));
  const known = await Promise.all([...keys].map((key) => sums.get(key)));
  const books = known.filter((row) => row !== null);
  for (const row of change(books)) if (!books.includes(row)) sums.set(assetKey(row), row);
}

const accountOf = ({ network, asset, payTo: payee }: PaymentReserved): ChainAccount => ({
  network,
  asset,
  payee,
});

/** The charge of this payment, unless it is none, missing or the payee's own, is unconfirmed from now on. */
async function unconfirm(tables: LedgerTables, stream: string, { payment }: LedgerEntry): Promise<void> {
  const isIts = 'settled' in payment && isCharged(payment) && !isSelfPaid(payment.reserved);
  await setUnconfirmed(
    tables,
    stream,
    isIts
      ? {
          account: accountOf(payment.reserved),
          amount: BigInt(payment.reserved.amount),
          settledAt: Date.parse(payment.settled.settledAt),
          validBefore: payment.reserved.validBefore,
        }
      : null,
  );
}

async function setUnconfirmed(
  tables: LedgerTables,
  stream: string,
  charge: UnconfirmedCharge | null,
): Promise<void> {
  const known = await tables.unconfirmed.get(stream);
  if (known === null && charge === null) return;
  tables.unconfirmed.set(stream, charge);
  const moneyOf = ({ account, amount }: UnconfirmedCharge) => ({ ...account, amount: String(amount) });
  const [less, more] = [known && moneyOf(known), charge && moneyOf(charge)];
  await changeSums(tables, [less, more], (books) =>
    add(add(books, 'unconfirmed', less, -1n), 'unconfirmed', more, 1n),
  );
}

async function addComparison(
  tables: LedgerTables,
  log: Streams,
  place: Place,
  event: EventOf<'ChainReconciled'>,
): Promise<void> {
  const key = accountKey(event.data);
  const known = await tables.comparisons.get(key);
  const replaces = known !== null && event.data.fromBlock <= known.toBlock;
  const before = replaces ? await booksBefore(tables, log, place, event) : known;
  tables.comparisons.set(key, addRound(before, event.data));
  for (const hash of event.data.confirmed) await setUnconfirmed(tables, STREAM.payment(hash), null);
}

/** The books of the rounds that stand before this one. The payments of those that it replaces are unconfirmed again. */
async function booksBefore(
  tables: LedgerTables,
  log: Streams,
  { revision, position }: Place,
  { data }: EventOf<'ChainReconciled'>,
): Promise<ChainBooks | null> {
  let books: ChainBooks | null = null;
  const isBefore = (event: RecordedEvent) => event.position < position;
  for await (const round of standingRounds(log, data, revision - 1n)) {
    if (round.toBlock < data.fromBlock) books = addRound(books, round);
    else
      for (const hash of round.confirmed) {
        const stream = STREAM.payment(hash);
        await unconfirm(tables, stream, await entryAt(log, stream, isBefore));
      }
  }
  return books;
}

/** The events of one payment and of its jobs, in the order of the log: all, or those that `counts` returns true for. */
export async function readHistory(
  log: Streams,
  id: string,
  counts: (event: RecordedEvent) => boolean = () => true,
): Promise<readonly LedgerEvent[]> {
  const paid = (await log.readStream(id)).filter(counts);
  const jobs = new Set(paid.flatMap(({ data }) => (typeof data.jobId === 'string' ? [data.jobId] : [])));
  const ran = await Promise.all([...jobs].map((jobId) => log.readStream(STREAM.job(jobId))));
  return [...paid, ...ran.flat().filter(counts)]
    .sort((a, b) => (a.position < b.position ? -1 : 1))
    .map(eventIn)
    .filter(isLedgerEvent);
}

/** The entry of a payment after those of its events, and of its jobs', that `counts` returns true for. */
const entryAt = async (log: Streams, stream: string, counts: (event: RecordedEvent) => boolean) =>
  (await readHistory(log, stream, counts)).reduce(evolveEntry, NO_ENTRY);

// ── the rounds of a comparison with the chain that no later round replaced ──────────────────────────

const PAGE = 256;

/**
 * The newest first, up to this revision, in constant memory. A round stands if each newer one that stands begins after its
 * last block. Throws for an event that it cannot read.
 */
export async function* standingRounds(
  log: Streams,
  account: ChainAccount,
  upTo?: bigint,
): AsyncGenerator<ChainReconciled, void, undefined> {
  for await (const { round } of recordedRounds(log, account, upTo)) yield round;
}

/** The same, each with its position in the log. */
export async function* recordedRounds(
  log: Streams,
  account: ChainAccount,
  upTo?: bigint,
): AsyncGenerator<{ readonly round: ChainReconciled; readonly position: string }, void, undefined> {
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
      yield { round: data, position: recorded.position };
    }
    const last = page.at(-1)?.revision ?? 0n;
    if (last === 0n) return;
    next = last - 1n;
  }
}
