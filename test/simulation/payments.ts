// The facilitator and the chain's node as the processes reach them. The facilitator may be down, slow, and wrong in either
// direction; the node may be down or behind. Money moves only on the chain.

import type { FoundTransfers } from '#src/domain/payment/refund.ts';
import type { SettleAnswer } from '#src/domain/payment/settlement.ts';
import { ALLOWED, refused } from '#src/domain/refusal.ts';
import { type ChainScan, ChainUnavailable } from '#src/ports/chain-scan.ts';
import type { Payments, PresentedPayment } from '#src/ports/payments.ts';
import { BLOCK_SECONDS, FIRST_BLOCK, MemoryChain, nodeOf } from '#test/support/chain/memory-chain.ts';
import { type Delays, EPOCH, type Host } from './host.ts';
import type { Random } from './random.ts';
import type { Scheduler } from './scheduler.ts';
import type { Trace } from './trace.ts';

export const NETWORK = 'eip155:8453';
export const ASSET = '0x833589fcd6edb6e08f4c7c32d4f71b54bda02913';
export const PAYEE = `0x${'ee'.repeat(20)}`;
export const PRICE = '3000';

/** A chain that advances with virtual time. */
export const simulatedChain = (scheduler: Scheduler, random: Random, trace: Trace): MemoryChain =>
  new MemoryChain({
    startMs: EPOCH,
    now: () => scheduler.now,
    hashOf: (n) => `0x${String(n).padStart(6, '0')}${Buffer.from(random.bytes(29)).toString('hex')}`,
    note: (text) => trace.note(text),
  });

/** Weights of how a settle call goes, and probabilities of the rest. */
export type PaymentWeather = {
  settle: Record<SettleKind, number>;
  verifyUnavailable: number;
  nodeUnavailable: number;
  /** A scan leaves a transfer out of its answer. */
  scanOmits: number;
  /** The node keeps no state of the block. */
  stateGone: number;
};

export type SettleKind =
  /** The transfer is mined, and the answer is "settled". */
  | 'honest'
  | 'refused'
  /** Nothing is sent, and the answer is lost. */
  | 'down'
  /** The transfer is mined, and the answer is lost. */
  | 'unanswered'
  /** The answer is "pending" with a hash; the transfer is mined later. */
  | 'pending'
  /** The same, and the transfer is never mined. */
  | 'pending_dropped'
  /** A final refusal, and the transfer is mined. */
  | 'refused_and_moved'
  /** "Settled", and there is no transfer. */
  | 'settled_without_transfer';

export const HONEST: PaymentWeather = {
  settle: {
    honest: 1,
    refused: 0,
    down: 0,
    unanswered: 0,
    pending: 0,
    pending_dropped: 0,
    refused_and_moved: 0,
    settled_without_transfer: 0,
  },
  verifyUnavailable: 0,
  nodeUnavailable: 0,
  scanOmits: 0,
  stateGone: 0,
};

/** What the world notices of the payments. */
export type PaymentWitness = {
  settleArrived(payment: PresentedPayment, host: Host): void;
  settled(payment: PresentedPayment, kind: SettleKind): void;
};

const SAFE_LAG = 5;
const NODE: Delays = { request: [1, 40], answer: [1, 40] };
const SHORTEST_SECONDS = 6;
const LONGEST_SECONDS = 300;

export function simulatedPayments(
  chain: MemoryChain,
  host: Host,
  weather: PaymentWeather,
  witness: PaymentWitness,
): Payments {
  const { random, scheduler, trace } = host;

  /** Returns the outcome of the facilitator's work, and after how many ms it is known. */
  function settleNow(payment: PresentedPayment): {
    readonly answer: SettleAnswer | null;
    readonly ms: number;
  } {
    witness.settleArrived(payment, host);
    const waits = chain.waiting(payment).length > 0;
    const kind = random.weighted(weather.settle);
    const validBefore = Number(payment.validBefore);
    const isUsed = chain.endOf(payment) !== null;
    trace.note(`the facilitator gets a settle call (${kind}${isUsed ? ', its nonce is used' : ''})`);
    if (kind === 'down') return { answer: null, ms: random.between(50, 20_000) };
    if (isUsed || waits) {
      trace.reached('settle call for a used nonce');
      return {
        answer: { outcome: 'unknown', cause: 'invalid_exact_evm_nonce_already_used', transaction: null },
        ms: 50,
      };
    }
    if (validBefore <= (EPOCH + scheduler.now) / 1000 + 2)
      return { answer: { outcome: 'rejected', reason: 'payment_expired' }, ms: 50 };
    witness.settled(payment, kind);
    trace.reached(`settle: ${kind}`);
    const made = `0x${Buffer.from(random.bytes(32)).toString('hex')}`;
    if (kind === 'refused')
      return { answer: { outcome: 'rejected', reason: 'insufficient_funds' }, ms: random.between(10, 500) };
    if (kind === 'settled_without_transfer')
      return { answer: { outcome: 'settled', transaction: made }, ms: random.between(10, 4000) };
    if (kind === 'pending_dropped')
      return {
        answer: { outcome: 'unknown', cause: 'settlement_pending', transaction: made },
        ms: random.between(10, 9000),
      };
    const move = { from: payment.payer, to: payment.payTo, amount: BigInt(payment.amount) };
    const afterMs = kind === 'pending' ? random.between(0, 40_000) : random.between(0, 3000);
    const { payer, nonce } = payment;
    const { hash } = chain.submit('use', [move], { payer, nonce, validBefore }, afterMs);
    if (kind === 'pending')
      return {
        answer: { outcome: 'unknown', cause: 'settlement_pending', transaction: hash },
        ms: random.between(10, 9000),
      };
    const ms = afterMs + random.between(2000, 4500);
    if (kind === 'refused_and_moved')
      return { answer: { outcome: 'rejected', reason: 'insufficient_funds' }, ms };
    if (kind === 'unanswered') return { answer: null, ms };
    return { answer: { outcome: 'settled', transaction: hash }, ms };
  }

  return {
    mode: 'x402',
    validateTicket: () => ({ kind: 'ticket', verifiedBy: 'facilitator' }),
    verifySignature: async () => ({ outcome: 'valid' }),
    validateTerms: ({ amount, payTo }) =>
      amount === PRICE && payTo === PAYEE ? ALLOWED : refused('payment_required', 'other terms'),
    validateNew({ validBefore }, nowMs) {
      const now = Math.floor(nowMs / 1000);
      const isIn =
        Number(validBefore) > now + SHORTEST_SECONDS && Number(validBefore) <= now + LONGEST_SECONDS;
      return isIn ? ALLOWED : refused('payment_required', 'expired, or too far ahead');
    },
    verify(payment) {
      return host.call('verify', () => {
        chain.mine();
        if (random.chance(weather.verifyUnavailable)) return { outcome: 'unavailable' as const };
        if (chain.endOf(payment) !== null) return { outcome: 'invalid' as const, reason: 'nonce_used' };
        const isOver = Number(payment.validBefore) <= (EPOCH + scheduler.now) / 1000;
        return isOver
          ? { outcome: 'invalid' as const, reason: 'payment_expired' }
          : { outcome: 'valid' as const };
      });
    },
    async settle(payment) {
      const { answer, ms } = await host.call('settle', () => settleNow(payment), {
        delays: { request: [1, 200], answer: [0, 0] },
        counts: true,
      });
      // The time of the facilitator's work, and the time limit of the adapter.
      await host.clock.sleep(Math.min(ms, 20_000));
      // What became of its transaction meanwhile: the payer may have cancelled in front of it.
      const failed = answer?.outcome === 'settled' && chain.hasFailed(answer.transaction);
      if (failed)
        return {
          outcome: 'unknown',
          cause: 'invalid_exact_evm_transaction_failed',
          transaction: answer.transaction,
        };
      return answer !== null && ms <= 20_000
        ? answer
        : { outcome: 'unknown', cause: 'settle_no_answer', transaction: null };
    },
    balanceOf: () =>
      host.call(
        'a balance of the chain',
        () => (random.chance(weather.nodeUnavailable) ? null : 1_000_000_000_000n),
        { delays: NODE, counts: true },
      ),
    lookUp: (authorization) =>
      host.call(
        'a look-up of the chain',
        () =>
          random.chance(weather.nodeUnavailable) ? { outcome: 'unavailable' } : chain.lookUp(authorization),
        { delays: NODE, counts: true },
      ),
    health: async () => null,
  };
}

export function simulatedScan(chain: MemoryChain, host: Host, weather: PaymentWeather): ChainScan {
  const { random, trace } = host;
  const ask = <T>(answer: () => T): Promise<T> =>
    host.call(
      null,
      () => {
        if (random.chance(weather.nodeUnavailable)) throw new ChainUnavailable('unreachable');
        return answer();
      },
      { delays: NODE },
    );
  const node = nodeOf(
    chain,
    { network: NETWORK, asset: ASSET },
    {
      safeLag: SAFE_LAG,
      ask,
      omits(_request, read) {
        if (read.length === 0 || !random.chance(weather.scanOmits)) return () => false;
        trace.reached('scan that leaves a transfer out');
        const { hash: omitted } = random.pick(read);
        return (hash) => hash === omitted;
      },
      keepsState: () => !random.chance(weather.stateGone),
    },
  );
  // A block too early, and one that is still to come where the clock of the process is ahead.
  const blockOfTime = (time: number) => Math.floor((time - chain.timeOf(FIRST_BLOCK)) / BLOCK_SECONDS) - 1;
  return { ...node, blockBefore: (time) => ask(() => FIRST_BLOCK + Math.max(0, blockOfTime(time))) };
}

/** The chain as the command that completes a refund reads it. */
export const simulatedTransfers =
  (chain: MemoryChain, host: Host, weather: PaymentWeather) =>
  (transaction: string): Promise<FoundTransfers> =>
    host.call(
      'a look-up of a refund',
      (): FoundTransfers => {
        if (random(host, weather)) return { outcome: 'unavailable' };
        const transfers = chain.transfersIn(transaction, ASSET);
        const block = chain.blockOf(transaction);
        if (transfers === null || block === null) return { outcome: 'missing', network: NETWORK };
        const blocks = block - (chain.height - SAFE_LAG);
        if (blocks > 0) return { outcome: 'unconfirmed', blocks };
        return { outcome: 'found', network: NETWORK, atSeconds: chain.timeOf(block), transfers };
      },
      { delays: NODE, counts: true },
    );

const random = (host: Host, weather: PaymentWeather) => host.random.chance(weather.nodeUnavailable);
