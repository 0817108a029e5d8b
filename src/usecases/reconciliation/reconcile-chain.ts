// One round of the comparison of the books with the chain: reads the transfers to the payee in the blocks since the last
// round that still stands, records what they prove, and ends with ChainReconciled. A round that is cut off appends nothing
// that its repeat would not append.
import { type ChainReconciled, chainAccount } from '#src/domain/events/payment.ts';
import { type EventOf, event, STREAM } from '#src/domain/events.ts';
import {
  accountKey,
  type ChainAccount,
  type ChainBlock,
  hashOfStream,
} from '#src/domain/payment/reconciliation.ts';
import { isBound } from '#src/domain/payment/state.ts';
import { iso } from '#src/lib/iso.ts';
import type { ChainScan } from '#src/ports/chain-scan.ts';
import type { AbortSignalLike } from '#src/ports/event-log.ts';
import { type Ledger, openLedger, standingRounds } from '#src/usecases/payments/read-ledger.ts';
import { appendUnlessOvertaken, envelope } from '#src/usecases/process/stream.ts';
import { endKey, type JudgeDeps, type Judged, judgeOpen, openTurns, type Turns } from './judge-open.ts';
import { type BalanceMemory, type BooksDifference, noBalances, readBlocks } from './read-blocks.ts';
import { type SettledTransfers, settleTransfers } from './settle-transfers.ts';

export type ReconcileDeps = JudgeDeps & { readonly scan: ChainScan };

export type RoundOptions = {
  readonly account: ChainAccount;
  /** Compares again from this block on, or from an earlier one; null: continues. */
  readonly from: number | null;
  readonly signal: AbortSignalLike;
  readonly turns: Turns;
  readonly balances: BalanceMemory;
};

/** What a round found, by the streams of the payments. */
export type RoundFound = Pick<Judged, 'settled' | 'missing' | 'rejected' | 'unread'> &
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
      readonly found: RoundFound;
      /** Blocks remain. */
      readonly more: boolean;
    };

/** Blocks and transfers of one round: they bound its time, and the size of its event. */
const BLOCKS = 20_000;
const TRANSFERS = 1000;
/** Payers whose cancelled and spent authorizations are looked for. */
const PAYERS = 100;

/** Throws `ChainUnavailable`, and what the event log throws. The ledger is read first. */
export async function reconcileChain(
  deps: ReconcileDeps,
  ledger: Ledger,
  options: RoundOptions,
): Promise<Round> {
  const { scan } = deps;
  const { account, signal, turns, balances } = options;
  await ledger.catchUp();
  const stream = STREAM.chain(chainAccount(account));
  const expected = ledger.revisions.get(stream) ?? 'no_stream';
  const head = await scan.safeBlock(signal);
  const { from, replaced } = await firstBlock(deps, ledger, options, head);
  if (from > head.number) return { kind: 'up_to_date', upTo: head };

  const last = Math.min(head.number, from + BLOCKS - 1);
  const payers = payersOf(ledger, account);
  const wanted = { payee: account.payee, from, to: last, maxTransfers: TRANSFERS, payers };
  const read = await readBlocks(deps, balances, { ...wanted, account, head, signal });
  if (read.kind === 'reorganised') return { kind: 'overtaken' };
  const { scanned, upTo } = read;

  const isOvertaken = async () => {
    const [newest] = await deps.log.readStream(stream, { direction: 'backwards', max: 1 });
    return (newest?.revision ?? 'no_stream') !== expected;
  };
  const { transfers } = scanned;
  const paid = await settleTransfers(deps, ledger, { account, transfers, isOvertaken });
  if (read.kind === 'differs')
    return { kind: 'differs', difference: read.difference, found: paid, upTo: head };
  const judged = await judgeOpen(deps, ledger, {
    account,
    upTo,
    confirmed: new Set(paid.confirmed),
    replaced,
    ended: new Set(scanned.ended.map(endKey)),
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
  return { kind: 'reconciled', round: event.data, revision, found, more: upTo.number < head.number };
}

type FirstBlock = {
  readonly from: number;
  /** Streams of payments that the rounds which this one replaces had confirmed. */
  readonly replaced: readonly string[];
};

/** After the last round whose block is still in the chain, and at or before `from`. */
async function firstBlock(
  { scan, log }: ReconcileDeps,
  ledger: Ledger,
  { account, from, signal }: RoundOptions,
  head: ChainBlock,
): Promise<FirstBlock> {
  const known = ledger.comparisons.get(accountKey(account))?.books ?? null;
  if (known === null) {
    const begins = await beginning(scan, ledger, account, head, signal);
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
  for await (const round of standingRounds(log, account)) {
    const block = round.toBlock < limit ? await scan.block(round.toBlock, signal) : null;
    if (block?.hash === round.blockHash) return { from: round.toBlock + 1, replaced };
    // The others are unconfirmed charges in the next round.
    if (replaced.length < TRANSFERS) replaced.push(...round.confirmed.map(STREAM.payment));
  }
  return { from: Math.min(limit, known.fromBlock), replaced };
}

/** An authorization is used at most this long before the clock of this process says that it was reserved. */
const CLOCKS_SECONDS = 900;

/** Of the first round: the block of the account's first reservation; the newest one if there is none. */
async function beginning(
  scan: ChainScan,
  ledger: Ledger,
  account: ChainAccount,
  head: ChainBlock,
  signal: AbortSignalLike,
): Promise<number> {
  const first = ledger.firstReserved.get(accountKey(account));
  if (first === undefined) return head.number;
  const before = await scan.blockBefore(Math.floor(first / 1000) - CLOCKS_SECONDS, signal);
  return Math.min(before, head.number);
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
  readonly judged: Judged;
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
  const ledger = openLedger(deps.log);
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
    const result = await reconcileChain(deps, ledger, { account, from, signal, turns, balances });
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
