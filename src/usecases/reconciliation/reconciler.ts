// Compares the books with the chain as long as the service runs: one round after the other until the newest block that
// counts, then again after the interval. Of several processes the first one that finishes a round has made it; the others
// wait an interval from then on.
import { type ChainReconciled, chainAccount } from '#src/domain/events/payment.ts';
import { STREAM } from '#src/domain/events.ts';
import { differenceFacts, STANDSTILL_MS } from '#src/domain/monitoring/health.ts';
import { type Ledger, NO_LEDGER } from '#src/domain/payment/ledger.ts';
import { accountKey, type ChainAccount } from '#src/domain/payment/reconciliation.ts';
import { iso } from '#src/lib/iso.ts';
import { ChainUnavailable } from '#src/ports/chain-scan.ts';
import type { Clock } from '#src/ports/clock.ts';
import { type AbortSignalLike, EventLogUnavailable } from '#src/ports/event-log.ts';
import { isOutage } from '#src/ports/outage.ts';
import type { PaymentFigures } from '#src/ports/telemetry.ts';
import { Worker } from '#src/usecases/process/worker.ts';
import { openTurns } from './judge-open.ts';
import { agedFigures, paymentFigures } from './payment-figures.ts';
import { type BooksDifference, noBalances } from './read-blocks.ts';
import { lastRound, type ReconcileDeps, type Round, reconcileChain } from './reconcile-chain.ts';

export type ReconcilerDeps = ReconcileDeps & {
  readonly payee: string;
  readonly intervalMs: number;
  /** Aborts when the service begins to end. */
  readonly stopping: AbortSignalLike;
  /** As `standstill` has it. */
  readonly standstillMs?: number | undefined;
};

export type Reconciler = {
  /** Resolves when `stopping` aborts and the call in hand has ended. Never rejects. */
  run(): Promise<void>;
  /** As of the last look at the ledger, with the ages of now; null before the first one, and while it is unavailable. */
  figures(): PaymentFigures | null;
  /** RFC 3339: since when no block was compared, by any process; null: lately one was. */
  standsStillSince(): string | null;
  /** Between the payee's balance and the transfers of the blocks that are compared; null: none. */
  difference(): BooksDifference | null;
};

export function chainReconciler(deps: ReconcilerDeps): Reconciler {
  const { log, clock, logger, scan, payee, intervalMs, stopping } = deps;
  const own: ChainAccount = { network: scan.network, asset: scan.asset, payee };
  const turns = openTurns();
  const balances = noBalances();
  const differences = booksDifferences();
  const others = roundsOfOthers();
  const reports = roundReports(deps);
  const still = standstill(clock, intervalMs, deps.standstillMs);
  let last: { readonly figures: PaymentFigures; readonly at: number } | null = null;

  const lookAtOwn = async () => still.look((await lastRound(log, own)).round);

  /** Without it the comparison continues: what it would name is found once it is back. */
  async function ledger(): Promise<Ledger> {
    try {
      const found = await deps.ledger();
      const figures = paymentFigures(found, own, clock.now(), differences.units());
      last = { figures, at: clock.monotonic() };
      return found;
    } catch (cause) {
      if (!isOutage(cause) || cause instanceof EventLogUnavailable) throw cause;
      last = null;
      return NO_LEDGER;
    }
  }

  /** All rounds of one account until its newest block. */
  async function compare(account: ChainAccount): Promise<void> {
    const stream = STREAM.chain(chainAccount(account));
    let from: number | null = null;
    let isRepeated = false;
    while (!stopping.aborted) {
      await lookAtOwn();
      const options = { account, from, signal: stopping, turns, balances };
      const round = await reconcileChain({ ...deps, ledger }, options);
      if (round.kind !== 'overtaken')
        differences.look(account, round.kind === 'differs' ? round.difference : null);
      if (round.kind !== 'reconciled') return;
      others.own(stream, round.revision);
      reports.round(round, from);
      from = null;
      if (round.more) continue;
      if (round.found.unread === null || isRepeated) return;
      // Once a look: a node that leaves it out again is asked after the interval.
      isRepeated = true;
      from = round.found.unread;
      reports.unread(from);
    }
  }

  let waits: number[] = [];
  let isUnavailable = false;

  function noteUnavailable(cause: unknown): void {
    if (!(cause instanceof ChainUnavailable)) throw cause;
    isUnavailable = true;
    const isNamed = cause.code === 'other_chain' || cause.code === 'no_safe_block';
    logger.condition('chain', isNamed ? cause.code : 'no_answer', { why: cause.code });
  }

  const worker = new Worker<ChainAccount>(
    { clock, logger, stopping },
    {
      pauseMs: () => Math.min(intervalMs, ...waits),
      async candidates() {
        waits = [];
        isUnavailable = false;
        await lookAtOwn();
        return accountsOf(await ledger(), own);
      },
      keyOf: accountKey,
      async look(account) {
        // All accounts are of one chain.
        if (isUnavailable) return 'later';
        const stream = STREAM.chain(chainAccount(account));
        const { revision } = await lastRound(log, account);
        const wait = others.wait(stream, revision, clock.monotonic(), intervalMs);
        if (wait > 0) {
          waits.push(wait);
          return 'later';
        }
        await compare(account).catch(noteUnavailable);
        return 'later';
      },
      async after() {
        if (isUnavailable) return;
        await lookAtOwn();
        await ledger();
        const [since, difference] = [still.since(), differences.first()];
        if (difference !== null)
          logger.condition('chain', 'books_differ_from_chain', differenceFacts(difference));
        else logger.condition('chain', since === null ? null : 'not_compared', { since });
      },
      failed: { message: 'the comparison of the books with the chain failed' },
      repeatMs: { first: intervalMs, most: intervalMs },
    },
  );

  return {
    run: () => worker.run(),
    standsStillSince: still.since,
    difference: differences.first,
    figures: () => last && agedFigures(last.figures, (clock.monotonic() - last.at) / 1000),
  };
}

/** The own account, and earlier payees of the same asset as long as something of theirs is open. */
function accountsOf(ledger: Ledger, own: ChainAccount): readonly ChainAccount[] {
  const accounts = new Map([[accountKey(own), own]]);
  const add = (account: ChainAccount) => {
    const key = accountKey(account);
    const isOurs = account.network === own.network && account.asset.toLowerCase() === own.asset;
    if (isOurs && !accounts.has(key)) accounts.set(key, { ...own, payee: account.payee.toLowerCase() });
  };
  for (const { account } of ledger.unconfirmed.values()) add(account);
  for (const { payment } of ledger.entries.values())
    if (payment.status !== 'absent') add({ ...payment.reserved, payee: payment.reserved.payTo });
  return [...accounts.values()];
}

/** Rounds that other processes made, and when this one noticed them. */
function roundsOfOthers() {
  const seen = new Map<string, { readonly revision: bigint; readonly at: number }>();
  return {
    own(stream: string, revision: bigint): void {
      seen.set(stream, { revision, at: Number.NEGATIVE_INFINITY });
    },
    /** ms until this process is to make a round. */
    wait(stream: string, revision: bigint | null, now: number, intervalMs: number): number {
      const before = seen.get(stream);
      if (revision !== null && before?.revision !== revision) {
        // At the start it is unknown when it was made.
        const at = before === undefined ? Number.NEGATIVE_INFINITY : now;
        seen.set(stream, { revision, at });
      }
      return (seen.get(stream)?.at ?? Number.NEGATIVE_INFINITY) + intervalMs - now;
    },
  };
}

const FOUND = [
  ['missing', 'error', 'charges are not on the chain; see `relay payments --missing`'],
  [
    'corrected',
    'error',
    'charges are on the chain in another transaction than was recorded; see `relay payments --corrected`',
  ],
  ['settled', 'info', 'payments of unknown fate are on the chain: they are charged'],
] as const;

function roundReports({ logger }: Pick<ReconcilerDeps, 'logger'>) {
  return {
    unread(block: number): void {
      const message = 'the node left a transfer out of its answer; the blocks are read again';
      logger.warn(message, { block });
    },
    round({ round, found, before }: Extract<Round, { kind: 'reconciled' }>, from: number | null): void {
      const { fromBlock, toBlock } = round;
      if (before !== null && fromBlock <= before && from === null)
        logger.warn('the chain was reorganised; its blocks are compared again', { fromBlock, before });
      for (const [list, level, message] of FOUND)
        if (found[list].length > 0) logger[level](message, { payments: found[list], toBlock });
      if (round.unattributed.length > 0) {
        const transfers = round.unattributed.reduce((sum, row) => sum + row.transfers, 0);
        const message = 'transfers to the payee pay for nothing in the books; see `relay payments --missing`';
        logger.warn(message, { transfers, fromBlock, toBlock });
      }
    },
  };
}

// ── whether no further block is compared, for whatever reason ───────────────────────────────────────

/** `limitMs`: instead of `STANDSTILL_MS`. */
function standstill(
  { now, monotonic }: Pick<Clock, 'now' | 'monotonic'>,
  intervalMs: number,
  limitMs: number = STANDSTILL_MS,
) {
  const begun = { block: '', time: iso(now()), at: monotonic() };
  /** The last progress. `time`: of its record; of the block itself, if an earlier process made it. */
  let last: typeof begun | null = null;
  return {
    /** With the last block that any process has compared, as the event log has it; null: none. */
    look(books: Pick<ChainReconciled, 'blockHash' | 'blockTime'> | null): void {
      const block = books?.blockHash ?? '';
      if (block === last?.block) return;
      const age = books === null ? 0 : Math.max(0, now() - Date.parse(books.blockTime));
      if (last !== null) last = { block, time: iso(now()), at: monotonic() };
      else if (books === null) last = begun;
      else last = { block, time: books.blockTime, at: monotonic() - age };
    },
    /** RFC 3339, since when it stands still; null: it does not. */
    since(): string | null {
      const { time, at } = last ?? begun;
      return monotonic() - at > limitMs + 2 * intervalMs ? time : null;
    },
  };
}

/** Whether the payee's balance agrees with the transfers in the blocks that are compared, of each account. */
function booksDifferences() {
  const open = new Map<string, BooksDifference>();
  return {
    /** null: the balance agrees. */
    look(account: ChainAccount, difference: BooksDifference | null): void {
      if (difference === null) open.delete(accountKey(account));
      else open.set(accountKey(account), difference);
    },
    /** null: there is none. */
    first: (): BooksDifference | null => open.values().next().value ?? null,
    /** Sum of all, in atomic units. */
    units: (): bigint =>
      [...open.values()].reduce((sum, { units }) => sum + (units < 0n ? -units : units), 0n),
  };
}
