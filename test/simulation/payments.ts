// The facilitator and the chain's node as the processes reach them. The facilitator may be down, slow, and wrong in either
// direction; the node may be down or behind. Money moves only on the chain.

import type { FoundTransfers } from '#src/domain/payment/refund.ts';
import { ALLOWED, refused } from '#src/domain/refusal.ts';
import { type ChainScan, ChainUnavailable } from '#src/ports/chain-scan.ts';
import type { Payments, PresentedPayment } from '#src/ports/payments.ts';
import { BLOCK_SECONDS, FIRST_BLOCK, MemoryChain, nodeOf } from '#test/support/chain/memory-chain.ts';
import { memoryPayments, type PaymentWeather, type SettleKind } from '#test/support/chain/memory-payments.ts';
import type { Random } from '#test/support/world/random.ts';
import { type Delays, EPOCH, type Host } from './host.ts';
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

/** What the world notices of the payments. */
export type PaymentWitness = {
  settleArrived(payment: PresentedPayment, host: Host): void;
  settled(payment: PresentedPayment, kind: SettleKind): void;
};

const SAFE_LAG = 5;
const NODE: Delays = { request: [1, 40], answer: [1, 40] };
const SHORTEST_SECONDS = 6;
const LONGEST_SECONDS = 300;
/** How each call travels. */
const TRAVELS = {
  verify: { what: 'verify' },
  settle: { what: 'settle', delays: { request: [1, 200], answer: [0, 0] }, counts: true },
  lookUp: { what: 'a look-up of the chain', delays: NODE, counts: true },
  balanceOf: { what: 'a balance of the chain', delays: NODE, counts: true },
} as const;

export function simulatedPayments(
  chain: MemoryChain,
  host: Host,
  weather: PaymentWeather,
  witness: PaymentWitness,
): Payments {
  const { random, trace } = host;
  return memoryPayments(chain, {
    validateTerms: ({ amount, payTo }) =>
      amount === PRICE && payTo === PAYEE ? ALLOWED : refused('payment_required', 'other terms'),
    validateNew({ validBefore }, nowMs) {
      const now = Math.floor(nowMs / 1000);
      const isIn =
        Number(validBefore) > now + SHORTEST_SECONDS && Number(validBefore) <= now + LONGEST_SECONDS;
      return isIn ? ALLOWED : refused('payment_required', 'expired, or too far ahead');
    },
    carry(call, effect) {
      const { what, ...travel } = TRAVELS[call];
      return host.call(what, effect, travel);
    },
    random,
    weather,
    trace,
    arrives: (payment) => witness.settleArrived(payment, host),
    acts: witness.settled.bind(witness),
    takes: (from, to) => random.between(from, to),
    sleep: (ms) => host.clock.sleep(ms),
  });
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
