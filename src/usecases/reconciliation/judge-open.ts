// Asks the chain about the payments that a comparison leaves open: charges without a transfer, and payments of unknown fate
// whose authorization has ended.

import type { EventOf } from '#src/domain/events.ts';
import type { Ledger, LedgerEntry } from '#src/domain/payment/ledger.ts';
import {
  accountKey,
  type ChainAccount,
  type ChainBlock,
  hashOfStream,
  isCharged,
  isDue,
  missingCharge,
} from '#src/domain/payment/reconciliation.ts';
import {
  type ChainFinding,
  isBound,
  isMissing,
  isReturned,
  isSurelyOver,
  type Payment,
  paymentSettled,
  reconcile,
} from '#src/domain/payment/state.ts';
import { isoNow } from '#src/lib/iso.ts';
import { type ChainScan, ChainUnavailable } from '#src/ports/chain-scan.ts';
import type { AbortSignalLike } from '#src/ports/event-log.ts';
import type { Payments } from '#src/ports/payments.ts';
import { recordedRounds } from '#src/usecases/process/fold-ledger.ts';
import { JOB, type JournalDeps, load, PAYMENT, tryAppend } from '#src/usecases/process/stream.ts';

export type JudgeOpenDeps = JournalDeps & {
  readonly scan: Pick<ChainScan, 'blockOf'>;
  readonly lookUp: Payments['lookUp'];
};

/** A comparison up to a block, and what it found before open payments are judged. */
export type Compared = {
  readonly account: ChainAccount;
  /** The first block. */
  readonly from: number;
  readonly upTo: ChainBlock;
  /** Streams of the payments that the compared blocks pay. */
  readonly confirmed: ReadonlySet<string>;
  /** Streams of payments that earlier rounds had confirmed, which this one replaces. */
  readonly replaced: readonly string[];
  /** Streams of the payments whose authorizations ended in these blocks. */
  readonly ended: ReadonlySet<string>;
  readonly signal: AbortSignalLike;
  /** Another process has continued the comparison: what this one found counts no more. */
  readonly isOvertaken: () => Promise<boolean>;
  readonly turns: OpenTurns;
};

export type JudgedPayments = {
  readonly settled: readonly string[];
  readonly missing: readonly string[];
  readonly rejected: readonly string[];
  /** A block with a transfer that the node left out of its answer; null: none. */
  readonly unread: number | null;
};

/** Payments for which the chain is asked in one round. */
const LOOK_UPS = 50;
/** After this the others wait for the next round. */
const JUDGE_MS = 30_000;
/** Consecutive look-ups without an answer after which the others wait for the next round. */
const FAILURES = 3;
/** A charge that was found missing by mistake, as by a process that was frozen meanwhile, is found again within this. */
export const RECENT_MS = 86_400_000;

/** Stops when the signal aborts, or when another process continues the comparison. */
export async function judgeOpen(
  deps: JudgeOpenDeps,
  ledger: Ledger,
  compared: Compared,
): Promise<JudgedPayments> {
  const judged = { settled: [] as string[], missing: [] as string[], rejected: [] as string[] };
  let unread: number | null = null;
  let failures = 0;
  const until = deps.clock.monotonic() + JUDGE_MS;
  for (const stream of compared.turns.take(candidates(deps, ledger, compared), LOOK_UPS)) {
    if (compared.signal.aborted || failures >= FAILURES || deps.clock.monotonic() > until) break;
    const view = await load(deps, PAYMENT, stream);
    const { state } = view;
    if (state.status === 'absent' || !isOpenTo(state, compared.upTo)) continue;
    const transaction = transactionOf(state);
    const finding = await deps.lookUp(state.reserved, { transaction, signal: compared.signal });
    failures = finding.outcome === 'unavailable' ? failures + 1 : 0;
    if (finding.outcome !== 'unavailable' && state.status === 'rejected') compared.turns.over.add(stream);
    unread = earlier(unread, await unreadBlock(deps, stream, finding, compared));
    const fact = await factOf(deps, state, finding, compared.upTo);
    if (fact === null) continue;
    if (await compared.isOvertaken()) break;
    // Another process may have appended to the payment meanwhile: the next round judges it again.
    const after = await tryAppend(deps, PAYMENT, view, [fact]);
    if (after !== null) judged[LISTS[fact.type]].push(stream);
  }
  return { ...judged, unread };
}

/** The hash that the facilitator named; null: none. */
const transactionOf = (payment: Payment): string | null =>
  'settled' in payment ? payment.settled.transaction : 'transaction' in payment ? payment.transaction : null;

const LISTS = { PaymentSettled: 'settled', PaymentMissing: 'missing', PaymentRejected: 'rejected' } as const;

/** The chain up to this block can change what the books say of it. */
const isOpenTo = (payment: Payment, upTo: ChainBlock): boolean =>
  'settled' in payment && isCharged(payment)
    ? isDue({ ...payment.reserved, settledAt: Date.parse(payment.settled.settledAt) }, upTo)
    : isMissing(payment) || isBound(payment) || isRefusedAndOver(payment, upTo);

/** A facilitator may have moved the money all the same: now nothing can move any more. */
const isRefusedAndOver = (payment: Payment, { time }: ChainBlock): boolean =>
  payment.status === 'rejected' && isSurelyOver(payment.reserved, time);

function candidates(deps: JudgeOpenDeps, ledger: Ledger, compared: Compared): readonly string[] {
  const { account, upTo, confirmed } = compared;
  const key = accountKey(account);
  const found = new Set(compared.replaced.filter((stream) => !confirmed.has(stream)));
  for (const [stream, charge] of ledger.unconfirmed)
    if (!confirmed.has(stream) && accountKey(charge.account) === key && isDue(charge, upTo))
      found.add(stream);
  const now = deps.clock.now();
  for (const [stream, entry] of ledger.entries)
    if (!confirmed.has(stream) && isOf(entry, key) && mayHaveEnded(stream, entry, compared, now))
      found.add(stream);
  for (const stream of refusedAndOver(ledger, key, compared, now)) found.add(stream);
  return [...found];
}

/** Those of the last day that this process has not looked up: an earlier process has looked the others up. */
function refusedAndOver(
  { refused }: Ledger,
  key: string,
  { turns: { over }, upTo }: Compared,
  nowMs: number,
): readonly string[] {
  for (const stream of over) if (!refused.has(stream)) over.delete(stream);
  const found: string[] = [];
  for (const [stream, payment] of refused) {
    if (accountKey(payment.account) !== key || over.has(stream)) continue;
    const isRecent = nowMs - Number(payment.validBefore) * 1000 <= RECENT_MS;
    if (isRecent && isSurelyOver(payment, upTo.time)) found.push(stream);
  }
  return found;
}

const isOf = ({ payment }: LedgerEntry, key: string): boolean =>
  payment.status !== 'absent' && accountKey({ ...payment.reserved, payee: payment.reserved.payTo }) === key;

function mayHaveEnded(
  stream: string,
  { payment, since }: LedgerEntry,
  { upTo, ended }: Compared,
  nowMs: number,
): boolean {
  if (payment.status === 'absent' || isCharged(payment)) return false;
  if (isMissing(payment)) return nowMs - Date.parse(since) < RECENT_MS;
  return isBound(payment) && (isSurelyOver(payment.reserved, upTo.time) || ended.has(stream));
}

async function factOf(
  deps: JudgeOpenDeps,
  payment: Payment,
  finding: ChainFinding,
  upTo: ChainBlock,
): Promise<EventOf<'PaymentSettled' | 'PaymentMissing' | 'PaymentRejected'> | null> {
  const at = isoNow(deps);
  if (isCharged(payment)) return missingCharge(payment, finding, upTo, at);
  if (isReturned(payment))
    return finding.outcome === 'paid' ? paymentSettled(payment, finding.transaction, 'chain', at) : null;
  if (payment.status === 'rejected')
    return finding.outcome === 'paid' ? paymentSettled(payment, finding.transaction, 'chain', at) : null;
  if (!isBound(payment)) return null;
  const fact = reconcile(finding, payment, at);
  // A missing charge that bought a call stays listed: the call was made for nothing.
  const isOver = fact?.type === 'PaymentRejected' && payment.status === 'missing';
  return isOver && (await hasStarted(deps, payment.reserved.jobId)) ? null : fact;
}

const hasStarted = async ({ log }: JudgeOpenDeps, jobId: string): Promise<boolean> =>
  (await load({ log }, JOB, jobId)).state.status !== 'absent';

/** The transfer of a payment is in a compared block, and the node's answer for these blocks did not contain it. */
async function unreadBlock(
  deps: JudgeOpenDeps,
  stream: string,
  finding: ChainFinding,
  compared: Compared,
): Promise<number | null> {
  if (finding.outcome !== 'paid' || finding.transaction === null) return null;
  const block = await deps.scan.blockOf(finding.transaction, compared.signal).catch(onlyUnavailable);
  if (block === null || block > compared.upTo.number) return null;
  return block < compared.from && (await hasConfirmed(deps, stream, block, compared)) ? null : block;
}

/** A round that stands has confirmed the charge since it was recorded: what named it as a candidate does not contain it yet. */
async function hasConfirmed(
  { log }: JudgeOpenDeps,
  stream: string,
  block: number,
  { account, from }: Compared,
): Promise<boolean> {
  const charged = (await log.readStream(stream)).findLast(({ type }) => type === 'PaymentSettled');
  for await (const { round, position } of recordedRounds(log, account)) {
    if (round.toBlock < block) return false;
    if (round.toBlock < from && round.fromBlock <= block)
      return position > (charged?.position ?? '') && round.confirmed.includes(hashOfStream(stream));
  }
  return false;
}

/** The next round asks again. */
function onlyUnavailable(error: unknown): null {
  if (error instanceof ChainUnavailable) return null;
  throw error;
}

const earlier = (a: number | null, b: number | null): number | null =>
  a === null || b === null ? (a ?? b) : Math.min(a, b);

export type OpenTurns = {
  /** Takes turns: a candidate is taken again only after each other one was. One at which its user stops was not. */
  take(candidates: readonly string[], max: number): Iterable<string>;
  /** Refused payments that were looked up. */
  readonly over: Set<string>;
};

export function openTurns(): OpenTurns {
  let turn = 0;
  let lastTurn = new Map<string, number>();
  return {
    over: new Set(),
    *take(candidates, max) {
      turn++;
      const last = (one: string) => lastTurn.get(one) ?? 0;
      const next = [...candidates].sort((a, b) => last(a) - last(b)).slice(0, max);
      lastTurn = new Map(candidates.map((one) => [one, last(one)]));
      for (const payment of next) {
        yield payment;
        lastTurn.set(payment, turn);
      }
    },
  };
}
