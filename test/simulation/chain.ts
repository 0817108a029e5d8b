// A small chain: a block every two seconds, transactions that wait for one, authorizations that are used once, and
// reorganisations. It advances with virtual time and needs no task of its own.
import type { ChainBlock, ChainTransfer } from '#src/domain/payment/reconciliation.ts';
import type { Transfer } from '#src/domain/payment/refund.ts';
import type { ChainFinding } from '#src/domain/payment/state.ts';
import type { Scan, ScanRequest } from '#src/ports/chain-scan.ts';
import type { Authorization } from '#src/ports/payments.ts';
import { EPOCH } from './host.ts';
import type { Random } from './random.ts';
import type { Scheduler } from './scheduler.ts';
import type { Trace } from './trace.ts';

export const NETWORK = 'eip155:8453';
export const ASSET = '0x833589fcd6edb6e08f4c7c32d4f71b54bda02913';
export const PAYEE = `0x${'ee'.repeat(20)}`;
export const PRICE = '3000';

const BLOCK_SECONDS = 2;
const FIRST_BLOCK = 1000;

type Use = { readonly payer: string; readonly nonce: string };

export type Transaction = {
  readonly hash: string;
  readonly kind: 'use' | 'cancel' | 'transfer';
  readonly moves: readonly { readonly from: string; readonly to: string; readonly amount: bigint }[];
  /** The authorization that it uses or cancels; null: none. */
  readonly authorization: (Use & { readonly validBefore: number }) | null;
  /** Virtual ms from which a block may contain it. */
  at: number;
  block: number | null;
  /** It was in no block in time, or its authorization had ended: it moves nothing. */
  failed: boolean;
};

export class Chain {
  readonly transactions: Transaction[] = [];
  readonly #scheduler: Scheduler;
  readonly #random: Random;
  readonly #trace: Trace;
  readonly #forks: number[] = [];
  #made = 0;

  constructor(scheduler: Scheduler, random: Random, trace: Trace) {
    this.#scheduler = scheduler;
    this.#random = random;
    this.#trace = trace;
  }

  get height(): number {
    return FIRST_BLOCK + Math.floor(this.#scheduler.now / 1000 / BLOCK_SECONDS);
  }

  block(number: number): ChainBlock | null {
    if (number > this.height || number < FIRST_BLOCK) return null;
    return { number, hash: this.#hashOf(number), time: timeOf(number) };
  }

  /** `afterMs`: until a block may contain it. */
  submit(
    kind: Transaction['kind'],
    moves: Transaction['moves'],
    authorization: Transaction['authorization'],
    afterMs: number,
  ): Transaction {
    const hash = `0x${String(++this.#made).padStart(6, '0')}${Buffer.from(this.#random.bytes(29)).toString('hex')}`;
    const transaction = {
      hash,
      kind,
      moves,
      authorization,
      at: this.#scheduler.now + afterMs,
      block: null,
      failed: false,
    };
    this.transactions.push(transaction);
    this.#trace.note(`a transaction (${kind}) is submitted to the chain`);
    return transaction;
  }

  /** Puts what waits into blocks, in the order of the times at which it may be in one. */
  mine(): void {
    const waiting = this.transactions.filter(({ block, failed }) => block === null && !failed);
    for (const transaction of waiting.sort((a, b) => a.at - b.at)) {
      const block = FIRST_BLOCK + Math.floor(transaction.at / 1000 / BLOCK_SECONDS) + 1;
      if (block > this.height) continue;
      const { authorization } = transaction;
      const isOver =
        authorization !== null &&
        (authorization.validBefore <= timeOf(block) || this.endOf(authorization) !== null);
      transaction.failed = isOver && !(transaction.kind === 'cancel' && this.endOf(authorization) === null);
      if (!transaction.failed) transaction.block = block;
      this.#trace.note(
        `the chain ${transaction.failed ? 'drops' : 'mines'} a transaction (${transaction.kind})`,
      );
    }
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

  /** Blocks from this one on are replaced. What they contained waits again, or is dropped with this probability. */
  reorganise(from: number, dropped: number): number {
    this.mine();
    this.#forks.push(from);
    const removed = this.transactions.filter(({ block }) => block !== null && block >= from);
    for (const transaction of removed) {
      transaction.block = null;
      // Operators do not send a refund twice: their transfers wait for another block.
      transaction.failed = transaction.kind !== 'transfer' && this.#random.chance(dropped);
      transaction.at = this.#scheduler.now + this.#random.between(0, 8000);
    }
    this.#trace.note(
      `the chain is reorganised from block ${from} on: ${removed.length} transactions are removed`,
    );
    this.#trace.reached(
      removed.length > 0 ? 'reorganisation with transfers' : 'reorganisation of empty blocks',
    );
    return removed.length;
  }

  /** What came to the payee by the block `to`. */
  received(to: number, payee = PAYEE): bigint {
    this.mine();
    return this.transactions
      .filter(({ block }) => block !== null && block <= to)
      .flatMap(({ moves }) => moves.filter((move) => move.to === payee && move.from !== payee))
      .reduce((sum, { amount }) => sum + amount, 0n);
  }

  scan({ payee, from, to, maxTransfers, payers }: ScanRequest, omitted: string | null): Scan {
    this.mine();
    const read = this.transactions
      .filter(({ block }) => block !== null && block >= from && block <= to)
      .sort((a, b) => (a.block ?? 0) - (b.block ?? 0));
    const transfers: ChainTransfer[] = [];
    const sent: { block: number; amount: bigint }[] = [];
    for (const { hash, moves, block, authorization } of read) {
      // The rest of the block has to be read, too.
      if (transfers.length >= maxTransfers && block !== transfers.at(-1)?.block)
        return this.#scanned(transfers.at(-1)?.block ?? to, { transfers, sent, ended: [] });
      if (hash === omitted) continue;
      const nonce = authorization?.nonce ?? null;
      for (const { from: sender, to: receiver, amount } of moves) {
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
    return this.#scanned(to, { transfers, sent, ended });
  }

  #scanned(to: number, read: Omit<Scan, 'to' | 'hash'>): Scan {
    return { ...read, to, hash: this.#hashOf(to) };
  }

  /** What came to the payee, minus what it sent, by the block. */
  balanceOf(payee: string, number: number): bigint {
    this.mine();
    return this.transactions
      .filter(({ block }) => block !== null && block <= number)
      .flatMap(({ moves }) => moves)
      .reduce(
        (sum, { from, to, amount }) => sum + (to === payee ? amount : 0n) - (from === payee ? amount : 0n),
        0n,
      );
  }

  lookUp(payment: Authorization): ChainFinding {
    this.mine();
    const end = this.endOf(payment);
    if (end === null) return { outcome: 'unused', chainTimeSeconds: timeOf(this.height) };
    if (end.kind === 'cancel') return { outcome: 'cancelled' };
    const isOurs = end.moves.some(
      ({ to, amount }) => to === payment.payTo && amount === BigInt(payment.amount),
    );
    return isOurs ? { outcome: 'paid', transaction: end.hash } : { outcome: 'spent_elsewhere' };
  }

  /** Whether a transaction that uses the authorization is in a block, or may still be. */
  isPaidOrWaiting(authorization: Use & { readonly validBefore: string }): boolean {
    this.mine();
    const end = this.endOf(authorization);
    if (end !== null) return end.kind === 'use';
    const { payer, nonce, validBefore } = authorization;
    if (Number(validBefore) <= timeOf(this.height)) return false;
    return this.transactions.some(
      ({ kind, failed, authorization: its }) =>
        kind === 'use' && !failed && its?.nonce === nonce && its.payer === payer,
    );
  }

  hasFailed(hash: string): boolean {
    this.mine();
    return this.transactions.find((transaction) => transaction.hash === hash)?.failed === true;
  }

  blockOf(hash: string): number | null {
    this.mine();
    return this.transactions.find((transaction) => transaction.hash === hash)?.block ?? null;
  }

  blockBefore(time: number): number {
    return Math.max(FIRST_BLOCK, FIRST_BLOCK + Math.floor((time - EPOCH / 1000) / BLOCK_SECONDS) - 1);
  }

  /** null: the transaction is in no block. */
  transfersIn(hash: string): readonly Transfer[] | null {
    this.mine();
    const found = this.transactions.find((transaction) => transaction.hash === hash);
    if (found?.block == null) return null;
    return found.moves.map(({ from, to, amount }) => ({ asset: ASSET, sender: from, recipient: to, amount }));
  }

  /** Names the last reorganisation that replaced the block. */
  #hashOf(number: number): string {
    const fork = this.#forks.findLastIndex((from) => from <= number) + 1;
    return `0x${fork.toString(16).padStart(8, '0')}${number.toString(16).padStart(56, '0')}`;
  }
}

/** Unix seconds. */
export const timeOf = (number: number): number => EPOCH / 1000 + (number - FIRST_BLOCK) * BLOCK_SECONDS;
