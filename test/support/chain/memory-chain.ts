// A chain in memory: a block every two seconds, transactions that wait for one, authorizations that are used once, and
// reorganisations. Who makes it moves its time. `nodeOf` is the port over it, with what can go wrong at a node.
import type { ChainBlock, ChainTransfer } from '#src/domain/payment/reconciliation.ts';
import type { Transfer } from '#src/domain/payment/refund.ts';
import type { ChainFinding } from '#src/domain/payment/state.ts';
import { type ChainScan, ChainUnavailable, type Scan, type ScanRequest } from '#src/ports/chain-scan.ts';
import type { Authorization } from '#src/ports/payments.ts';

export const BLOCK_SECONDS = 2;
export const FIRST_BLOCK = 1000;
/** What is submitted with this delay is in the last block at once. */
export const MINED = -BLOCK_SECONDS * 1000;

type Use = { readonly payer: string; readonly nonce: string };
type Paying = Pick<Authorization, 'payer' | 'nonce' | 'validBefore' | 'payTo' | 'amount'> & {
  readonly validAfter?: string;
};

export type Transaction = {
  readonly hash: string;
  readonly kind: 'use' | 'cancel' | 'transfer';
  readonly moves: readonly { readonly from: string; readonly to: string; readonly amount: bigint }[];
  /** The authorization that it uses or cancels; null: none. `validBefore`: Unix seconds. */
  readonly authorization: (Use & { readonly validBefore: number; readonly validAfter?: number }) | null;
  /** From this time on a block may contain it. */
  at: number;
  block: number | null;
  /** It was in no block in time, its authorization had ended, or its payer has too little: it moves nothing. */
  failed: boolean;
};

type MemoryChainOptions = {
  /** Unix ms of the first block. */
  readonly startMs: number;
  /** Ms since then. */
  readonly now: () => number;
  /** Of the nth transaction. */
  readonly hashOf?: (n: number) => string;
  readonly note?: (text: string) => void;
};

export class MemoryChain {
  readonly transactions: Transaction[] = [];
  /** What accounts have at first; one that is missing can pay anything. */
  readonly purses = new Map<string, bigint>();
  readonly #options: MemoryChainOptions;
  readonly #forks: number[] = [];
  #made = 0;

  constructor(options: MemoryChainOptions) {
    this.#options = options;
  }

  get height(): number {
    return blockAt(this.#options.now());
  }

  /** Unix seconds, with their parts. */
  get seconds(): number {
    return (this.#options.startMs + this.#options.now()) / 1000;
  }

  /** Unix seconds. */
  timeOf(number: number): number {
    return this.#options.startMs / 1000 + (number - FIRST_BLOCK) * BLOCK_SECONDS;
  }

  block(number: number): ChainBlock | null {
    if (number > this.height || number < FIRST_BLOCK) return null;
    return { number, hash: this.#hashOf(number), time: this.timeOf(number) };
  }

  /** `afterMs`: until a block may contain it. */
  submit(
    kind: Transaction['kind'],
    moves: Transaction['moves'],
    authorization: Transaction['authorization'],
    afterMs: number,
    hash = this.#nextHash(),
  ): Transaction {
    const at = this.#options.now() + afterMs;
    const transaction = { hash, kind, moves, authorization, at, block: null, failed: false };
    this.transactions.push(transaction);
    this.#options.note?.(`a transaction (${kind}) is submitted to the chain`);
    return transaction;
  }

  #nextHash(): string {
    const n = ++this.#made;
    return this.#options.hashOf?.(n) ?? `0x${String(n).padStart(64, '0')}`;
  }

  /** Submits the transfer that the payer has signed. */
  pay({ payer, nonce, payTo, amount, ...times }: Paying, afterMs: number): Transaction {
    const moves = [{ from: payer, to: payTo, amount: BigInt(amount) }];
    const [validBefore, validAfter] = [Number(times.validBefore), Number(times.validAfter ?? 0)];
    return this.submit('use', moves, { payer, nonce, validBefore, validAfter }, afterMs);
  }

  /** Gives the transaction's hash. Throws if the authorization has ended. */
  payAtOnce(paying: Paying): string {
    const { hash } = this.pay(paying, MINED);
    this.mine();
    if (this.endOf(paying)?.hash !== hash) throw new Error('the money moved twice, or too late');
    return hash;
  }

  /** Nonces whose money has moved, with their transaction. */
  get ledger(): ReadonlyMap<string, string> {
    const uses = this.transactions.filter(({ block, kind }) => block !== null && kind === 'use');
    return new Map(uses.map(({ hash, authorization }) => [authorization?.nonce ?? '', hash]));
  }

  /** Puts what waits into blocks, in the order of the times at which it may be in one. */
  mine(): void {
    const waiting = this.transactions.filter(({ block, failed }) => block === null && !failed);
    for (const transaction of waiting.sort((a, b) => a.at - b.at)) {
      const block = blockAt(transaction.at) + 1;
      if (block > this.height) continue;
      const { authorization, kind } = transaction;
      const hasEnded = authorization !== null && this.endOf(authorization) !== null;
      const { validAfter = 0, validBefore = Infinity } = authorization ?? {};
      const isInTime = this.timeOf(block) > validAfter && this.timeOf(block) < validBefore;
      transaction.failed = hasEnded || (!isInTime && kind !== 'cancel') || !this.#canPay(transaction, block);
      if (!transaction.failed) transaction.block = block;
      this.#options.note?.(`the chain ${transaction.failed ? 'drops' : 'mines'} a transaction (${kind})`);
    }
  }

  #canPay({ moves }: Transaction, block: number): boolean {
    return moves.every(({ from, amount }) => {
      const purse = this.purses.get(from);
      return purse === undefined || purse + this.#moved(from, block) >= amount;
    });
  }

  /** Transactions in these blocks. */
  within(from: number, to: number): Transaction[] {
    this.mine();
    return this.transactions.filter(({ block }) => block !== null && block >= from && block <= to);
  }

  /** What has ended the authorization; null: nothing so far. */
  endOf({ payer, nonce }: Use): Transaction | null {
    return (
      this.transactions.find(
        ({ block, authorization }) =>
          block !== null && authorization?.nonce === nonce && authorization.payer === payer,
      ) ?? null
    );
  }

  /** Blocks from this one on are replaced. `waits`: ms until what they contained may be in a block again; null: never. */
  reorganise(from: number, waits: (transaction: Transaction) => number | null): number {
    const removed = this.within(from, Number.POSITIVE_INFINITY);
    this.#forks.push(from);
    for (const transaction of removed) {
      const ms = waits(transaction);
      Object.assign(transaction, { block: null, failed: ms === null, at: this.#options.now() + (ms ?? 0) });
    }
    this.#options.note?.(
      `the chain is reorganised from block ${from} on: ${removed.length} transactions are removed`,
    );
    return removed.length;
  }

  /** What came to the payee by the block `to`. */
  received(to: number, payee: string): bigint {
    return this.within(FIRST_BLOCK, to)
      .flatMap(({ moves }) => moves.filter((move) => move.to === payee && move.from !== payee))
      .reduce((sum, { amount }) => sum + amount, 0n);
  }

  scan({ payee, from, to, maxTransfers, payers }: ScanRequest, omits: (hash: string) => boolean): Scan {
    const read = this.within(from, to).sort((a, b) => (a.block ?? 0) - (b.block ?? 0));
    const transfers: ChainTransfer[] = [];
    const sent: { block: number; amount: bigint }[] = [];
    for (const { hash, moves, block, authorization } of read) {
      const last = transfers.at(-1)?.block ?? to;
      // The rest of the block has to be read, too.
      if (transfers.length >= maxTransfers && block !== last)
        return { to: last, hash: this.#hashOf(last), transfers, sent, ended: [] };
      if (omits(hash)) continue;
      const nonce = authorization?.nonce ?? null;
      for (const { from: sender, to: receiver, amount } of moves) {
        if (amount === 0n) continue;
        if (receiver === payee && sender !== payee)
          transfers.push({ transaction: hash, block: block ?? 0, sender, amount, nonce });
        if (sender === payee && receiver !== payee) sent.push({ block: block ?? 0, amount });
      }
    }
    const ended = read.flatMap(({ authorization }) =>
      authorization !== null && payers.includes(authorization.payer)
        ? [{ payer: authorization.payer, nonce: authorization.nonce }]
        : [],
    );
    return { to, hash: this.#hashOf(to), transfers, sent, ended };
  }

  /** What came to the payee, minus what it sent, by the block. */
  balanceOf(payee: string, number: number): bigint {
    this.mine();
    return this.#moved(payee, number);
  }

  #moved(owner: string, number: number): bigint {
    return this.transactions
      .flatMap(({ block, moves }) => (block !== null && block <= number ? moves : []))
      .reduce(
        (sum, { from, to, amount }) => sum + (to === owner ? amount : 0n) - (from === owner ? amount : 0n),
        0n,
      );
  }

  lookUp(payment: Authorization): ChainFinding {
    this.mine();
    const end = this.endOf(payment);
    if (end === null) return { outcome: 'unused', chainTimeSeconds: this.timeOf(this.height) };
    if (end.kind === 'cancel') return { outcome: 'cancelled' };
    const isOurs = end.moves.some(
      ({ to, amount }) => to === payment.payTo && amount === BigInt(payment.amount),
    );
    return isOurs ? { outcome: 'paid', transaction: end.hash } : { outcome: 'spent_elsewhere' };
  }

  /** Transactions of the authorization that may still be in a block. */
  waiting({ payer, nonce }: Use): Transaction[] {
    this.mine();
    return this.transactions.filter(
      ({ block, failed, authorization: its }) =>
        block === null && !failed && its?.nonce === nonce && its.payer === payer,
    );
  }

  /** Whether a transaction that uses the authorization is in a block, or may still be. */
  isPaidOrWaiting(authorization: Use & { readonly validBefore: string }): boolean {
    const waiting = this.waiting(authorization);
    const end = this.endOf(authorization);
    if (end !== null) return end.kind === 'use';
    const isOver = Number(authorization.validBefore) <= this.timeOf(this.height);
    return !isOver && waiting.some(({ kind }) => kind === 'use');
  }

  hasFailed(hash: string): boolean {
    this.mine();
    return this.transactions.find((transaction) => transaction.hash === hash)?.failed === true;
  }

  #found(hash: string): Transaction | null {
    this.mine();
    return this.transactions.find((one) => one.hash === hash && one.block !== null) ?? null;
  }

  /** null: the transaction is in no block. */
  blockOf = (hash: string): number | null => this.#found(hash)?.block ?? null;

  /** null: the transaction is in no block. */
  transfersIn(hash: string, asset: string): readonly Transfer[] | null {
    const moves = this.#found(hash)?.moves;
    return moves?.map(({ from, to, amount }) => ({ asset, sender: from, recipient: to, amount })) ?? null;
  }

  /** The last block before this time, Unix seconds; 0: none is. */
  blockBefore(time: number): number {
    const number = FIRST_BLOCK + Math.ceil((time - this.timeOf(FIRST_BLOCK)) / BLOCK_SECONDS) - 1;
    return number < FIRST_BLOCK ? 0 : Math.min(this.height, number);
  }

  /** Names the last reorganisation that replaced the block. */
  #hashOf(number: number): string {
    const fork = this.#forks.findLastIndex((from) => from <= number) + 1;
    return `0x${fork.toString(16).padStart(8, '0')}${number.toString(16).padStart(56, '0')}`;
  }
}

const blockAt = (ms: number): number => FIRST_BLOCK + Math.floor(ms / 1000 / BLOCK_SECONDS);

type NodeFaults = {
  /** Brings a question to the node and its answer back, or throws. */
  ask<T>(answer: () => T): Promise<T>;
  /** Blocks that are not safe yet. */
  readonly safeLag: number;
  /** Which of these transactions the answer to a scan leaves out. */
  omits(request: ScanRequest, read: readonly Transaction[]): (hash: string) => boolean;
  /** Whether it has the state of the block. */
  keepsState(block: number): boolean;
};

/** The chain's node of one asset. */
export function nodeOf(
  chain: MemoryChain,
  { network, asset }: Pick<ChainScan, 'network' | 'asset'>,
  node: NodeFaults,
): ChainScan {
  return {
    network,
    asset,
    safeBlock: () =>
      node.ask(() => {
        const block = chain.block(Math.max(FIRST_BLOCK, chain.height - node.safeLag));
        if (block === null) throw new ChainUnavailable('no_safe_block');
        return block;
      }),
    block: (number) => node.ask(() => chain.block(number)),
    blockBefore: (time) => node.ask(() => chain.blockBefore(time)),
    blockOf: (transaction) => node.ask(() => chain.blockOf(transaction)),
    scan: (request) =>
      node.ask(() => {
        const { from, to } = request;
        return chain.scan(request, node.omits(request, chain.within(from, to)));
      }),
    balanceOf: (payee, block) =>
      node.ask(() => {
        if (!node.keepsState(block)) return { kind: 'state_gone' };
        if (block > chain.height) throw new ChainUnavailable('rpc_failed');
        return { kind: 'known', amount: chain.balanceOf(payee, block) };
      }),
    health: async () => ({ ok: true }),
  };
}
