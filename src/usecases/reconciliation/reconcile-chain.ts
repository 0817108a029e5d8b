// One round of the comparison of the books with the chain: reads the transfers to the payee in the blocks since the last
// round that still stands, records what they prove, and ends with ChainReconciled. A round that is cut off appends nothing
// that its repeat would not append.
import { type ChainReconciled, chainAccount } from '#src/domain/events/payment.ts';
import { claimedTime, type EventOf, event, STREAM } from '#src/domain/events.ts';
import type { Ledger } from '#src/domain/payment/ledger.ts';
import {
  accountKey,
  type ChainAccount,
  type ChainBlock,
  hashOfStream,
  streamOfAuthorization,
} from '#src/domain/payment/reconciliation.ts';
import { isBound } from '#src/domain/payment/state.ts';
import { iso } from '#src/lib/iso.ts';
import type { ChainScan } from '#src/ports/chain-scan.ts';
import type { AbortSignalLike } from '#src/ports/event-log.ts';
import { standingRounds } from '#src/usecases/process/fold-ledger.ts';
import { eventIn, eventsOf } from '#src/usecases/process/read-events.ts';
import { appendUnlessOvertaken, envelope } from '#src/usecases/process/stream.ts';
import {
  type JudgedPayments,
  type JudgeOpenDeps,
  judgeOpen,
  type OpenTurns,
  openTurns,
} from './judge-open.ts';
import { type BalanceMemory, type BooksDifference, noBalances, readBlocks } from './read-blocks.ts';
import { type SettledTransfers, settleTransfers } from './settle-transfers.ts';

export type ReconcileDeps = JudgeOpenDeps & {
  readonly scan: ChainScan;
  /** Names candidates. What it lacks is found later, and what it has too many of is of no harm: their streams decide. */
  readonly ledger: () => Promise<Ledger>;
};

export type RoundOptions = {
  readonly account: ChainAccount;
  /** Compares again from this block on, or from an earlier one; null: continues. */
  readonly from: number | null;
  readonly signal: AbortSignalLike;
  readonly turns: OpenTurns;
  readonly balances: BalanceMemory;
};

/** What a round found, by the streams of the payments. */
export type RoundFound = Pick<JudgedPayments, 'settled' | 'missing' | 'rejected' | 'unread'> &
  Pick<SettledTransfers, 'corrected'>;

export type Round =
  /** No block to compare has been added since the last round. */
  | { readonly kind: 'up_to_date'; readonly upTo: ChainBlock }
  /** Another process was faster, or the chain was reorganised meanwhile: the next round continues. */
  | { readonly kind: 'overtaken' }
  /** The payee's balance does not agree with the transfers: only what these prove is recorded, and no block counts. */
  | {
      readonly kind: 'differs';
      readonly difference: BooksDifference;
      readonly found: Pick<RoundFound, 'settled' | 'corrected'>;
      readonly upTo: ChainBlock;
    }
  | {
      readonly kind: 'reconciled';
      readonly round: ChainReconciled;
      /** Of its event. */
      readonly revision: bigint;
      /** The last block that was compared before; null: none. */
      readonly before: number | null;
      readonly found: RoundFound;
      /** Blocks remain. */
      readonly more: boolean;
    };

/** Blocks and transfers of one round: they bound its time, and the size of its event. */
const BLOCKS = 20_000;
const TRANSFERS = 1000;
/** Payers whose cancelled and spent authorizations are looked for. */
const PAYERS = 100;

/** The last round of an account, as its stream has it. */
export async function lastRound(
  log: ReconcileDeps['log'],
  account: ChainAccount,
): Promise<{
  /** Of the last event of the stream, of whichever asset; null: it has none. */
  readonly revision: bigint | null;
  readonly round: ChainReconciled | null;
}> {
  const stream = STREAM.chain(chainAccount(account));
  const [newest] = await log.readStream(stream, { direction: 'backwards', max: 1 });
  if (newest === undefined) return { revision: null, round: null };
  const { revision } = newest;
  const { type, data } = eventIn(newest);
  if (type === 'ChainReconciled' && accountKey(data) === accountKey(account))
    return { revision, round: data };
  const { value } = await standingRounds(log, account, revision).next();
  return { revision, round: value ?? null };
}

/** Throws `ChainUnavailable`, and what the event log and the ledger throw. */
export async function reconcileChain(deps: ReconcileDeps, options: RoundOptions): Promise<Round> {
  const { scan } = deps;
  const { account, signal, turns, balances } = options;
  // Read first: what is decided from here on counts only if no other round came between.
  const last = await lastRound(deps.log, account);
  const stream = STREAM.chain(chainAccount(account));
  const expected = last.revision ?? 'no_stream';
  const before = last.round?.toBlock ?? null;
  const ledger = await deps.ledger();
  const head = await scan.safeBlock(signal);
  const { from, replaced } = await firstBlock(deps, last, options, head);
  if (from > head.number) return { kind: 'up_to_date', upTo: head };

  const to = Math.min(head.number, from + BLOCKS - 1);
  const payers = payersOf(ledger, account);
  const wanted = { payee: account.payee, from, to, maxTransfers: TRANSFERS, payers };
  const read = await readBlocks(deps, balances, { ...wanted, account, head, signal });
  if (read.kind === 'reorganised') return { kind: 'overtaken' };
  const { scanned, upTo } = read;

  const isOvertaken = async () => {
    const [newest] = await deps.log.readStream(stream, { direction: 'backwards', max: 1 });
    return (newest?.revision ?? 'no_stream') !== expected;
  };
  const { transfers } = scanned;
  const paid = await settleTransfers(deps, { account, transfers, isOvertaken });
  if (read.kind === 'differs')
    return { kind: 'differs', difference: read.difference, found: paid, upTo: head };
  const judged = await judgeOpen(deps, ledger, {
    account,
    from,
    upTo,
    confirmed: new Set(paid.confirmed),
    replaced,
    ended: new Set(scanned.ended.map((authorization) => streamOfAuthorization(account, authorization))),
    signal,
    isOvertaken,
    turns,
  });
  if (signal.aborted) return { kind: 'overtaken' };

  const event = roundOf(deps, { account, from, upTo, paid, judged });
  const { missing, rejected, unread } = judged;
  const { corrected } = paid;
  const found = { settled: [...paid.settled, ...judged.settled], corrected, missing, rejected, unread };
  const appended = await appendUnlessOvertaken(deps, { stream, expected }, envelope(deps, [event], stream));
  if (appended === null) return { kind: 'overtaken' };
  const { nextRevision: revision } = appended;
  const more = upTo.number < head.number;
  return { kind: 'reconciled', round: event.data, revision, before, found, more };
}

type FirstBlock = {
  readonly from: number;
  /** Streams of payments that the rounds which this one replaces had confirmed. */
  readonly replaced: readonly string[];
};

/** After the last round whose block is still in the chain, and at or before `from`. */
async function firstBlock(
  { scan, log }: ReconcileDeps,
  { revision, round: known }: Awaited<ReturnType<typeof lastRound>>,
  { account, from, signal }: RoundOptions,
  head: ChainBlock,
): Promise<FirstBlock> {
  if (known === null || revision === null) {
    const begins = await beginning({ scan, log }, account, head, signal);
    // No later round would read the blocks between them.
    return { from: Math.min(from ?? begins, begins), replaced: [] };
  }
  const limit = from ?? known.toBlock + 1;
  if (limit > known.toBlock) {
    const block = await scan.block(known.toBlock, signal);
    // A node that does not have the block is behind, as one of several behind one address may be.
    if (block === null || block.hash === known.blockHash) return { from: known.toBlock + 1, replaced: [] };
  }
  const replaced: string[] = [];
  let first = known.fromBlock;
  for await (const round of standingRounds(log, account, revision)) {
    first = Math.min(first, round.fromBlock);
    const block = round.toBlock < limit ? await scan.block(round.toBlock, signal) : null;
    if (block?.hash === round.blockHash) return { from: round.toBlock + 1, replaced };
    // The others are unconfirmed charges in the next round.
    if (replaced.length < TRANSFERS) replaced.push(...round.confirmed.map(STREAM.payment));
  }
  return { from: Math.min(limit, first), replaced };
}

/** An authorization is used at most this long before the clock of this process says that it was reserved. */
const CLOCKS_SECONDS = 900;

/** Of the first round: the block of the account's first reservation; the newest one if there is none. */
async function beginning(
  { scan, log }: Pick<ReconcileDeps, 'scan' | 'log'>,
  account: ChainAccount,
  head: ChainBlock,
  signal: AbortSignalLike,
): Promise<number> {
  const first = await firstReserved(log, account);
  if (first === null) return head.number;
  const before = await scan.blockBefore(Math.floor(first / 1000) - CLOCKS_SECONDS, signal);
  return Math.min(before, head.number);
}

/** When the account's first payment was reserved, or bound to a run, Unix ms. */
async function firstReserved(log: ReconcileDeps['log'], account: ChainAccount): Promise<number | null> {
  const key = accountKey(account);
  for await (const { event } of eventsOf(log, ['PaymentReserved', 'PaymentDeferred']))
    if (accountKey({ ...event.data, payee: event.data.payTo }) === key) return Date.parse(claimedTime(event));
  return null;
}

function payersOf(ledger: Ledger, account: ChainAccount): readonly string[] {
  const key = accountKey(account);
  const payers = new Set<string>();
  for (const { payment } of ledger.entries.values()) {
    if (payers.size >= PAYERS) break;
    if (!isBound(payment) || payment.status === 'settled') continue;
    const { network, asset, payTo: payee, payer } = payment.reserved;
    if (accountKey({ network, asset, payee }) === key) payers.add(payer);
  }
  return [...payers];
}

type RoundFacts = {
  readonly account: ChainAccount;
  readonly from: number;
  readonly upTo: ChainBlock;
  readonly paid: SettledTransfers;
  readonly judged: JudgedPayments;
};

function roundOf(
  { clock }: ReconcileDeps,
  { account, from, upTo, paid, judged }: RoundFacts,
): EventOf<'ChainReconciled'> {
  return event('ChainReconciled', {
    ...account,
    fromBlock: from,
    toBlock: upTo.number,
    blockHash: upTo.hash,
    blockTime: iso(upTo.time * 1000),
    received: String(paid.received),
    transfers: paid.transfers,
    confirmed: paid.confirmed.map(hashOfStream),
    settledFound: paid.settled.length + judged.settled.length,
    corrected: paid.corrected.length,
    missing: judged.missing.length,
    unattributed: [...paid.unattributed],
    reconciledAt: iso(clock.now()),
  });
}

// ── all rounds until the newest block that counts, as a command runs them ───────────────────────────

export type Reconciled = {
  /** Those that stand: no block counts twice. */
  readonly rounds: readonly ChainReconciled[];
  /** Of all rounds that were made, by the streams of the payments. */
  readonly found: Omit<RoundFound, 'unread'>;
  /** The newest block that counts. */
  readonly upTo: ChainBlock;
  /** Blocks that do not count, and those after them; null: none. */
  readonly difference: BooksDifference | null;
};

export type OnceOptions = {
  readonly account: ChainAccount;
  /** Compares again from this block on; null: continues. */
  readonly from: number | null;
  readonly signal: AbortSignalLike;
  /** Called after each round. `upTo`: the last block that is to be compared. */
  readonly onRound: (round: ChainReconciled) => void;
};

const PAUSE_MS = 500;

/**
 * Services may compare at the same time: what they are faster with is not repeated. Throws `ChainUnavailable`, and what the
 * event log throws.
 */
export async function reconcileOnce(deps: ReconcileDeps, options: OnceOptions): Promise<Reconciled> {
  const { account, signal, onRound } = options;
  const turns = openTurns();
  const balances = noBalances();
  let rounds: readonly ChainReconciled[] = [];
  const found = {
    settled: [] as string[],
    corrected: [] as string[],
    missing: [] as string[],
    rejected: [] as string[],
  };
  let { from } = options;
  let isRepeated = false;
  for (;;) {
    const result = await reconcileChain(deps, { account, from, signal, turns, balances });
    if (result.kind === 'up_to_date') return { rounds, found, upTo: result.upTo, difference: null };
    if (result.kind === 'overtaken') {
      if (signal.aborted) throw new Error('interrupted');
      await deps.clock.sleep(PAUSE_MS, signal);
      continue;
    }
    found.settled.push(...result.found.settled);
    found.corrected.push(...result.found.corrected);
    if (result.kind === 'differs') return { rounds, found, upTo: result.upTo, difference: result.difference };
    const { round } = result;
    rounds = [...rounds.filter(({ toBlock }) => toBlock < round.fromBlock), round];
    onRound(round);
    found.missing.push(...result.found.missing);
    found.rejected.push(...result.found.rejected);
    // Once: a node that leaves a transfer out again would be asked without end.
    from = result.more || isRepeated ? null : result.found.unread;
    isRepeated ||= from !== null;
  }
}
