// A chain as the tests of the reconciliation drive it: blocks with transfers, authorizations, and reorganisations. Its
// node implements the port and answers look-ups, and can leave out transfers or be behind.
import { createHash } from 'node:crypto';
import type { PaymentReserved } from '#src/domain/events/payment.ts';
import type { ChainBlock, ChainTransfer } from '#src/domain/payment/reconciliation.ts';
import type { ChainFinding } from '#src/domain/payment/state.ts';
import { type ChainScan, ChainUnavailable, type ScanRequest } from '#src/ports/chain-scan.ts';
import type { Authorization } from '#src/ports/payments.ts';
import { paymentReserved, T0 } from './given-events.ts';

/** `transaction` null: made up. */
type Moved = Omit<ChainTransfer, 'block' | 'transaction'> & {
  readonly payee: string;
  readonly transaction: string | null;
};
type Ended = { readonly payer: string; readonly nonce: string };
type Block = ChainBlock & {
  readonly transfers: readonly (ChainTransfer & { payee: string })[];
  readonly ended: readonly Ended[];
};

/** The sample payment's facts, spelled as the chain spells them. */
export const ACCOUNT = {
  network: paymentReserved().data.network,
  asset: paymentReserved().data.asset.toLowerCase(),
  payee: paymentReserved().data.payTo,
};
export const BLOCK_SECONDS = 2;
export const FIRST_BLOCK = 1000;

const hashOf = (text: string): string => `0x${createHash('sha256').update(text).digest('hex')}`;
/** The transaction of an authorization, unless a test names another. */
export const transactionOf = ({ nonce }: Pick<PaymentReserved, 'nonce'>): string => hashOf(nonce);

type Paying = Pick<PaymentReserved, 'payer' | 'nonce' | 'amount' | 'payTo'>;

/** Block 1000 is mined at T0. */
export function fakeChain() {
  let blocks: Block[] = [];
  let fork = 0;
  /** What the next block contains. */
  let pending: { readonly moved: readonly Moved[]; readonly ended: readonly Ended[] }[] = [];
  const node = {
    safeLag: 0,
    isDown: false,
    /** Transactions that are left out of answers to a scan. */
    omits: new Set<string>(),
    /** Only scans that begin at this block leave them out, as a cache of answers would. */
    omitsFrom: null as number | null,
    /** No state of a block is kept. */
    keepsNoState: false,
    /** The state of so many blocks before the last one is kept. */
    keepsStateOf: Infinity,
    /** In the payee's balance, and in no transfer. */
    hidden: 0n,
    scans: [] as ScanRequest[],
    maxBlocks: Infinity,
  };

  function mine(count = 1): Block {
    for (let i = 0; i < count; i++) {
      const number = FIRST_BLOCK + blocks.length;
      const hash = hashOf(`${fork} ${number} ${blocks.at(-1)?.hash}`);
      const transfers = pending.flatMap(({ moved }, index) => {
        const madeUp = hashOf(`${number} ${index} ${fork}`);
        return moved.map((one) => ({ ...one, transaction: one.transaction ?? madeUp, block: number }));
      });
      const time = T0 / 1000 + (number - FIRST_BLOCK) * BLOCK_SECONDS;
      blocks.push({ number, hash, time, transfers, ended: pending.flatMap(({ ended }) => ended) });
      pending = [];
    }
    return last();
  }
  const last = (): Block => {
    const block = blocks.at(-1);
    if (block === undefined) throw new Error('a chain has a block');
    return block;
  };
  const up = () => {
    if (node.isDown) throw new ChainUnavailable('unreachable');
  };
  const shown = ({ number, hash, time }: Block): ChainBlock => ({ number, hash, time });
  const isUsed = ({ payer, nonce }: Ended) =>
    blocks.some(({ ended }) => ended.some((one) => one.payer === payer && one.nonce === nonce));

  mine();
  const scan: ChainScan = {
    network: ACCOUNT.network,
    asset: ACCOUNT.asset,
    async safeBlock() {
      up();
      return shown(blocks[Math.max(0, blocks.length - 1 - node.safeLag)] ?? last());
    },
    async block(number) {
      up();
      const found = blocks[number - FIRST_BLOCK];
      return found === undefined ? null : shown(found);
    },
    async blockBefore(time) {
      up();
      return blocks.findLast((block) => block.time <= time)?.number ?? FIRST_BLOCK;
    },
    async blockOf(transaction) {
      up();
      const has = ({ transfers }: Block) => transfers.some((one) => one.transaction === transaction);
      return blocks.find(has)?.number ?? null;
    },
    async health() {
      return node.isDown ? { ok: false, problem: 'no_answer' } : { ok: true };
    },
    async scan(request) {
      up();
      node.scans.push(request);
      const to = Math.min(request.to, request.from + node.maxBlocks - 1);
      const read = blocks.filter(({ number }) => number >= request.from && number <= to);
      const transfers: ChainTransfer[] = [];
      const sent: { block: number; amount: bigint }[] = [];
      const isCached = node.omitsFrom === null || node.omitsFrom === request.from;
      for (const block of read) {
        for (const { payee, ...transfer } of block.transfers) {
          if (isCached && node.omits.has(transfer.transaction)) continue;
          if (payee === request.payee) transfers.push(transfer);
          if (transfer.sender === request.payee) sent.push({ block: block.number, amount: transfer.amount });
        }
        if (transfers.length >= request.maxTransfers)
          return { to: block.number, hash: block.hash, transfers, sent, ended: [] };
      }
      const ended = read.flatMap((block) =>
        block.ended.filter(({ payer }) => request.payers.includes(payer)),
      );
      return { to, hash: blocks[to - FIRST_BLOCK]?.hash ?? '', transfers, sent, ended };
    },
    async balanceOf(payee, number) {
      up();
      const isOld = number < last().number - node.keepsStateOf;
      if (node.keepsNoState || isOld) return { kind: 'state_gone' };
      if (number - FIRST_BLOCK >= blocks.length) throw new ChainUnavailable('rpc_failed');
      const moves = blocks
        .slice(0, Math.max(0, number - FIRST_BLOCK + 1))
        .flatMap(({ transfers }) => transfers);
      const sumOf = (which: typeof moves) => which.reduce((sum, { amount }) => sum + amount, 0n);
      const received = sumOf(moves.filter((one) => one.payee === payee));
      const sent = sumOf(moves.filter(({ sender }) => sender === payee));
      const hidden = number >= last().number ? node.hidden : 0n;
      return { kind: 'known', amount: received - sent + hidden };
    },
  };

  return {
    node,
    scan,
    mine,
    last: () => shown(last()),
    /** Mined in the next block. */
    pay({ payer, nonce, amount, payTo }: Paying, transaction = transactionOf({ nonce })): void {
      const moved = [{ sender: payer, amount: BigInt(amount), nonce, payee: payTo, transaction }];
      pending.push({ moved, ended: [{ payer, nonce }] });
    },
    /** A transfer without an authorization. */
    transfer(sender: string, amount: bigint, payee = ACCOUNT.payee): void {
      pending.push({ moved: [{ sender, amount, nonce: null, payee, transaction: null }], ended: [] });
    },
    cancel({ payer, nonce }: Pick<Paying, 'payer' | 'nonce'>): void {
      pending.push({ moved: [], ended: [{ payer, nonce }] });
    },
    /** Mines until the chain's clock is at least so many seconds after T0. */
    mineUntil(seconds: number): void {
      while (last().time < T0 / 1000 + seconds) mine();
    },
    /** Replaces the blocks from this one on by as many empty ones, and one more. */
    reorganise(from: number): void {
      fork++;
      const removed = FIRST_BLOCK + blocks.length - from;
      blocks = blocks.slice(0, from - FIRST_BLOCK);
      mine(removed + 1);
    },
    /** What came to the payee. */
    received: (payee = ACCOUNT.payee): bigint =>
      blocks
        .flatMap(({ transfers }) => transfers.filter((one) => one.payee === payee))
        .reduce((sum, { amount }) => sum + amount, 0n),
    async lookUp(payment: Authorization): Promise<ChainFinding> {
      if (node.isDown) return { outcome: 'unavailable' };
      const { payer, nonce } = payment;
      if (!isUsed(payment)) return { outcome: 'unused', chainTimeSeconds: last().time };
      const transfers = blocks.flatMap((block) => block.transfers);
      const used = transfers.find((one) => one.sender === payer && one.nonce === nonce);
      if (used === undefined) return { outcome: 'cancelled' };
      return used.payee === payment.payTo && used.amount === BigInt(payment.amount)
        ? { outcome: 'paid', transaction: used.transaction }
        : { outcome: 'spent_elsewhere' };
    },
  };
}
