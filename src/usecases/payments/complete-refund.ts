// The second step of a refund: the transfers of one transaction are claimed for the refunds that have begun, and then these
// are recorded. The claim decides what the transaction refunds: a run that ended between the two is continued by the next.
import { refundId } from '#src/domain/events/refund.ts';
import { type PaymentEvent, STREAM } from '#src/domain/events.ts';
import {
  type Allocation,
  type Begun,
  type ConfirmFacts,
  claimTransfers,
  confirmRefund,
  type FoundTransfers,
  progressOf,
  type RefundingPayment,
  recordRefund,
  type Uncovered,
} from '#src/domain/payment/refund.ts';
import type { Payment } from '#src/domain/payment/state.ts';
import { isoNow } from '#src/lib/iso.ts';
import type { EventLog } from '#src/ports/event-log.ts';
import { eventsOf } from '#src/usecases/process/read-events.ts';
import {
  decide,
  JOB,
  type JournalDeps,
  type Loaded,
  load,
  PAYMENT,
  REFUND,
  tryAppend,
} from '#src/usecases/process/stream.ts';

export type CompleteRequest = {
  /** `0x` and 64 hex digits, lower case. */
  readonly transaction: string;
  /** Wallet beside the payee that refunds are sent from, lower case; null: none. */
  readonly refundFrom: string | null;
  readonly findTransfers: (transaction: string) => Promise<FoundTransfers>;
};

/** `recorded` false: an earlier run had recorded it. */
export type CompletedRefund = Allocation & { readonly recorded: boolean };

export type UncoveredRefund = {
  readonly id: string;
  readonly payer: string;
  readonly amount: string;
  readonly reason: Uncovered;
  /** That is claimed for it, with the reason `claimed_by_other`. */
  readonly claimedBy: string | null;
};

export type Completed =
  | {
      readonly outcome: 'completed';
      /** CAIP-2: of the chain that has the transaction. */
      readonly network: string;
      readonly refunds: readonly CompletedRefund[];
      /** Refunds that have begun, of payers that the transaction pays, which it does not cover. */
      readonly uncovered: readonly UncoveredRefund[];
    }
  | Exclude<FoundTransfers, { outcome: 'found' }>;

/** Refunds of one claim event: bounds its size. */
const MAX_REFUNDS = 500;

export async function completeRefunds(deps: JournalDeps, request: CompleteRequest): Promise<Completed> {
  const { transaction, refundFrom } = request;
  const found = await request.findTransfers(transaction);
  if (found.outcome !== 'found') return found;
  const { network } = found;
  const stream = STREAM.refund(refundId({ network, transaction }));
  let begun: readonly Begun[] | null = null;
  for (let released: readonly string[] = []; ; ) {
    // Before the claims: what is recorded meanwhile, and therefore not begun any more, is found in these.
    begun ??= await loadBegun(deps, request, found);
    const view = await load(deps, REFUND, stream);
    const { state } = view;
    const at = isoNow(deps);
    const facts = { transaction, found, begun, refundFrom, released, max: MAX_REFUNDS, at };
    const { event, uncovered } = claimTransfers(state, facts);
    if (event !== null) {
      if ((await tryAppend(deps, REFUND, view, [event])) === null) begun = null;
      else released = [];
      continue;
    }
    const refunds: CompletedRefund[] = [];
    const elsewhere: string[] = [];
    for (const allocation of state.allocations) {
      const recording = await record(deps, allocation, transaction);
      if (recording === 'elsewhere') elsewhere.push(allocation.payment);
      else refunds.push({ ...allocation, recorded: recording === 'now' });
    }
    // Another transaction was recorded for these at the same moment: this one may refund others.
    if (elsewhere.length === 0)
      return { outcome: 'completed', network, refunds, uncovered: uncovered.map(uncoveredOf) };
    released = elsewhere;
    begun = null;
  }
}

const uncoveredOf = ({ begun, reason }: { readonly begun: Begun; readonly reason: Uncovered }) => ({
  id: begun.id,
  payer: begun.payment.reserved.payer,
  amount: begun.payment.reserved.amount,
  reason,
  claimedBy: begun.claimedBy,
});

/** Of payers that the transaction pays. */
async function loadBegun(
  deps: JournalDeps,
  { transaction, findTransfers }: CompleteRequest,
  { network, transfers }: Extract<FoundTransfers, { outcome: 'found' }>,
): Promise<readonly Begun[]> {
  const paid = new Set(transfers.map(({ recipient }) => recipient.toLowerCase()));
  const ids = await findBegunRefunds(deps.log);
  const claimed = await findClaimed(deps.log, ids);
  const begun: Begun[] = [];
  for (const id of ids) {
    const view = await load(deps, PAYMENT, id);
    const { state } = view;
    if (state.status !== 'refunding' || state.reserved.network !== network) continue;
    if (!paid.has(state.reserved.payer.toLowerCase())) continue;
    const claimant = claimed.get(id) ?? null;
    const charge = state.settled.transaction;
    const found = charge === null ? null : await findTransfers(charge);
    const chargedAtSeconds = found?.outcome === 'found' ? found.atSeconds : null;
    const holds = confirmRefund(state, await confirmFacts(deps.log, view, state)) === 'holds';
    begun.push({
      id,
      payment: state,
      claimedBy: claimant === transaction ? null : claimant,
      holds,
      chargedAtSeconds,
    });
  }
  return begun;
}

/** `before`: an earlier call recorded it. `elsewhere`: see `recordRefund`. */
async function record(
  deps: JournalDeps,
  allocation: Allocation,
  transaction: string,
): Promise<'now' | 'before' | 'elsewhere'> {
  type Recorded = 'now' | 'before' | 'elsewhere';
  const { answer } = await decide<Payment, PaymentEvent, Recorded>(
    deps,
    PAYMENT,
    allocation.payment,
    async ({ state }) => {
      if (state.status === 'absent') return { events: [], answer: 'elsewhere' };
      const { jobId } = state.reserved;
      const isCancelled = state.status === 'settled' || state.status === 'missing';
      const served = isCancelled && progressOf((await load(deps, JOB, jobId)).state) === 'executed';
      const recording = recordRefund(state, allocation, { transaction, served, at: isoNow(deps) });
      if (recording.kind === 'elsewhere') return { events: [], answer: recording.kind };
      const { events } = recording;
      return { events, answer: events.length > 0 ? 'now' : 'before' };
    },
  );
  return answer;
}

// ── the refunds that have begun, and the transactions claimed for them ──────────────────────────────

/** Payment streams whose refund is neither cancelled nor recorded, the oldest first. Keeps only these in memory. */
export async function findBegunRefunds(log: EventLog): Promise<ReadonlySet<string>> {
  const begun = new Set<string>();
  const types = ['RefundBegun', 'RefundCancelled', 'PaymentRefunded'] as const;
  for await (const { recorded, event } of eventsOf(log, types)) {
    begun.delete(recorded.stream);
    if (event.type === 'RefundBegun') begun.add(recorded.stream);
  }
  return begun;
}

/** The transaction that is claimed for each of these payment streams; those without a claim are left out. */
export async function findClaimed(
  log: EventLog,
  payments: ReadonlySet<string>,
): Promise<ReadonlyMap<string, string>> {
  const claimed = new Map<string, string>();
  for await (const { event } of eventsOf(log, ['RefundClaimed'])) {
    const { transaction, transfers, released } = event.data;
    for (const payment of released) if (claimed.get(payment) === transaction) claimed.delete(payment);
    for (const { payment } of transfers.flatMap(({ refunds }) => refunds))
      if (payments.has(payment)) claimed.set(payment, transaction);
  }
  return claimed;
}

/** `payment`: as just read. A job that is read as absent, or starts behind the refund, reads the refund before it sends. */
export async function confirmFacts(
  log: EventLog,
  { events }: Loaded<Payment>,
  { reserved }: RefundingPayment,
): Promise<ConfirmFacts> {
  const { state, events: ofJob } = await load({ log }, JOB, reserved.jobId);
  const started = ofJob.find(({ type }) => type === 'JobStarted');
  const begun = events.findLast(({ type }) => type === 'RefundBegun');
  const startedBefore = started !== undefined && begun !== undefined && started.position < begun.position;
  return { job: progressOf(state), startedBefore };
}
