// The chain in memory as the tests of the reconciliation drive it: its time moves by blocks that they mine, and its node
// may be down or behind, leave transfers out, and forget.
import { createHash } from 'node:crypto';
import type { PaymentReserved } from '#src/domain/events/payment.ts';
import type { ChainBlock } from '#src/domain/payment/reconciliation.ts';
import type { ChainFinding } from '#src/domain/payment/state.ts';
import { type ChainScan, ChainUnavailable, type ScanRequest } from '#src/ports/chain-scan.ts';
import type { Authorization } from '#src/ports/payments.ts';
import { paymentReserved, T0 } from '#test/support/given/given-events.ts';
import { BLOCK_SECONDS, MemoryChain, nodeOf } from './memory-chain.ts';

/** The sample payment's facts, spelled as the chain spells them. */
export const ACCOUNT = {
  network: paymentReserved().data.network,
  asset: paymentReserved().data.asset.toLowerCase(),
  payee: paymentReserved().data.payTo,
};

const hashOf = (text: string): string => `0x${createHash('sha256').update(text).digest('hex')}`;
/** The transaction of an authorization, unless a test names another. */
export const transactionOf = ({ nonce }: Pick<PaymentReserved, 'nonce'>): string => hashOf(nonce);

type Paying = Pick<PaymentReserved, 'payer' | 'nonce' | 'amount' | 'payTo'>;

/** Its first block is mined at T0. */
export function fakeChain() {
  let mined = 0;
  const chain = new MemoryChain({
    startMs: T0,
    now: () => mined * BLOCK_SECONDS * 1000,
    hashOf: (n) => hashOf(`transaction ${n}`),
  });
  const node = {
    safeLag: 0,
    isDown: false,
    /** In the payee's balance, and in no transfer. */
    hidden: 0n,
    /** Transactions that are left out of answers to a scan. */
    omits: new Set<string>(),
    /** Only scans that begin at this block leave them out, as a cache of answers would. */
    omitsFrom: null as number | null,
    /** No state of a block is kept. */
    keepsNoState: false,
    /** The state of so many blocks before the last one is kept. */
    keepsStateOf: Infinity,
    scans: [] as ScanRequest[],
    maxBlocks: Infinity,
  };
  const last = (): ChainBlock => {
    const block = chain.block(chain.height);
    if (block === null) throw new Error('a chain has a block');
    return block;
  };
  function mine(count = 1): ChainBlock {
    mined += count;
    return last();
  }
  const port = nodeOf(chain, ACCOUNT, {
    async ask(answer) {
      if (node.isDown) throw new ChainUnavailable('unreachable');
      return answer();
    },
    get safeLag() {
      return node.safeLag;
    },
    omits: ({ from }) => {
      const isCached = node.omitsFrom === null || node.omitsFrom === from;
      return (hash) => isCached && node.omits.has(hash);
    },
    keepsState: (block) => !node.keepsNoState && block >= chain.height - node.keepsStateOf,
  });
  const scan: ChainScan = {
    ...port,
    health: async () => (node.isDown ? { ok: false, problem: 'no_answer' } : { ok: true }),
    scan(request) {
      node.scans.push(request);
      return port.scan({ ...request, to: Math.min(request.to, request.from + node.maxBlocks - 1) });
    },
    async balanceOf(payee, block) {
      const balance = await port.balanceOf(payee, block);
      if (balance.kind !== 'known' || block < chain.height) return balance;
      return { ...balance, amount: balance.amount + node.hidden };
    },
  };
  const use = ({ payer, nonce }: Pick<Paying, 'payer' | 'nonce'>) => ({
    payer,
    nonce,
    validBefore: Infinity,
  });
  return {
    node,
    scan,
    mine,
    last,
    /** Mined in the next block. */
    pay(paying: Paying, transaction = transactionOf(paying)): void {
      const { payer, amount, payTo } = paying;
      chain.submit('use', [{ from: payer, to: payTo, amount: BigInt(amount) }], use(paying), 0, transaction);
    },
    /** A transfer without an authorization. */
    transfer(from: string, amount: bigint, to = ACCOUNT.payee): void {
      chain.submit('transfer', [{ from, to, amount }], null, 0);
    },
    cancel(cancelling: Pick<Paying, 'payer' | 'nonce'>): void {
      chain.submit('cancel', [], use(cancelling), 0);
    },
    /** Mines until the chain's clock is at least so many seconds after T0. */
    mineUntil(seconds: number): void {
      mined = Math.max(mined, Math.ceil(seconds / BLOCK_SECONDS));
    },
    /** Replaces the blocks from this one on by as many empty ones, and one more. */
    reorganise(from: number): void {
      chain.reorganise(from, () => null);
      mine();
    },
    /** What came to the payee. */
    received: (payee = ACCOUNT.payee): bigint => chain.received(chain.height, payee),
    lookUp: async (payment: Authorization): Promise<ChainFinding> =>
      node.isDown ? { outcome: 'unavailable' } : chain.lookUp(payment),
  };
}
