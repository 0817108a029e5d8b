// The facilitator and the node of the chain in memory, as a process reaches them: money moves once per authorization.
// Each answer is as a test scripts it, and otherwise what the chain shows, with the faults that the hooks draw.
import type { SettleAnswer } from '#src/domain/payment/settlement.ts';
import type { ChainFinding } from '#src/domain/payment/state.ts';
import { ALLOWED } from '#src/domain/refusal.ts';
import type { Authorization, Payments, PresentedPayment, Verified } from '#src/ports/payments.ts';
import { Random } from '#test/support/world/random.ts';
import { type MemoryChain, MINED } from './memory-chain.ts';

/** How a settle call goes. */
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

type PaymentCall = 'judge' | 'verify' | 'settle' | 'lookUp';

type PaymentHooks = Pick<Payments, 'validateTerms' | 'validateNew'> & {
  readonly random: Random;
  readonly weather: PaymentWeather;
  readonly trace: { note(text: string): void; reached(what: string): void };
  /** Called before the call has left the process. */
  asked(call: PaymentCall): void;
  /** Brings a call there, and its answer back. */
  carry<T>(call: Exclude<PaymentCall, 'judge'> | 'balanceOf', effect: () => T): Promise<T>;
  /** A settle call arrives at the facilitator. */
  arrives(payment: PresentedPayment): void;
  acts(payment: PresentedPayment, kind: SettleKind): void;
  /** Ms of what takes between so many and so many. */
  takes(from: number, to: number): number;
  sleep(ms: number): Promise<void>;
};

/** Nothing goes wrong, and what moves was mined before the answer. */
const usualHooks = (): PaymentHooks => ({
  validateTerms: () => ALLOWED,
  validateNew: () => ALLOWED,
  random: new Random(),
  weather: HONEST,
  trace: { note: () => undefined, reached: () => undefined },
  asked: () => undefined,
  carry: async (_, effect) => effect(),
  arrives: () => undefined,
  acts: () => undefined,
  takes: () => MINED,
  sleep: async () => undefined,
});

export const nonceUsed = {
  outcome: 'unknown',
  cause: 'invalid_exact_evm_nonce_already_used',
  transaction: null,
} as const;
const rejected = (reason: string) => ({ outcome: 'rejected', reason }) as const;
const pending = (transaction: string) =>
  ({ outcome: 'unknown', cause: 'settlement_pending', transaction }) as const;

/** Of the adapter. */
const SETTLE_LIMIT_MS = 20_000;

type Scripted<T, P = PresentedPayment> = T | ((payment: P) => T | Promise<T>);
const scriptOf = <T, P = PresentedPayment>() => {
  const answers: Scripted<T, P>[] = [];
  return {
    add: (...more: readonly Scripted<T, P>[]) => void answers.push(...more),
    /** undefined: nothing is scripted. */
    next(payment: P): T | Promise<T> | undefined {
      const answer = answers.shift();
      return typeof answer === 'function' ? (answer as (payment: P) => T | Promise<T>)(payment) : answer;
    },
  };
};

export type MemoryPayments = ReturnType<typeof memoryPayments>;

export function memoryPayments(chain: MemoryChain, changes: Partial<PaymentHooks> = {}) {
  const hooks = { ...usualHooks(), ...changes };
  const { random, weather, trace } = hooks;
  const calls = { judge: 0, verify: 0, settle: 0, lookUp: 0 };
  /** Of every payer; null: the node does not answer. */
  const funds = { balance: 1_000_000_000_000n as bigint | null };
  const terms: ReturnType<Payments['validateTerms']>[] = [];
  const judged: ReturnType<Payments['validateNew']>[] = [];
  const [verifies, settles] = [scriptOf<Verified>(), scriptOf<SettleAnswer>()];
  const lookUps = scriptOf<ChainFinding, Authorization>();
  const asked = (call: PaymentCall) => {
    calls[call]++;
    hooks.asked(call);
  };

  /** The outcome of the facilitator's work, null if it is lost, and after how many ms it is known. */
  function settleNow(payment: PresentedPayment): {
    readonly answer: SettleAnswer | null;
    readonly ms: number;
  } {
    hooks.arrives(payment);
    const waits = chain.waiting(payment).length > 0;
    const kind = random.weighted(weather.settle);
    const isUsed = chain.endOf(payment) !== null;
    trace.note(`the facilitator gets a settle call (${kind}${isUsed ? ', its nonce is used' : ''})`);
    if (kind === 'down') return { answer: null, ms: hooks.takes(50, SETTLE_LIMIT_MS) };
    if (isUsed || waits) {
      trace.reached('settle call for a used nonce');
      return { answer: nonceUsed, ms: 50 };
    }
    if (Number(payment.validBefore) <= chain.seconds + 2)
      return { answer: rejected('payment_expired'), ms: 50 };
    hooks.acts(payment, kind);
    trace.reached(`settle: ${kind}`);
    const made = `0x${Buffer.from(random.bytes(32)).toString('hex')}`;
    if (kind === 'refused') return { answer: rejected('insufficient_funds'), ms: hooks.takes(10, 500) };
    if (kind === 'settled_without_transfer')
      return { answer: { outcome: 'settled', transaction: made }, ms: hooks.takes(10, 4000) };
    if (kind === 'pending_dropped') return { answer: pending(made), ms: hooks.takes(10, 9000) };
    const afterMs = hooks.takes(0, kind === 'pending' ? 40_000 : 3000);
    const { hash } = chain.pay(payment, afterMs);
    if (kind === 'pending') return { answer: pending(hash), ms: hooks.takes(10, 9000) };
    const ms = afterMs + hooks.takes(2000, 4500);
    if (kind === 'refused_and_moved') return { answer: rejected('insufficient_funds'), ms };
    return { answer: kind === 'unanswered' ? null : { outcome: 'settled', transaction: hash }, ms };
  }

  const payments = {
    mode: 'x402',
    validateTerms: (payment) => terms.shift() ?? hooks.validateTerms(payment),
    validateTicket: () => ({ kind: 'ticket', verifiedBy: 'facilitator' }),
    validateNew(payment, nowMs) {
      asked('judge');
      return judged.shift() ?? hooks.validateNew(payment, nowMs);
    },
    async verify(payment) {
      asked('verify');
      const invalid = (reason: string) => ({ outcome: 'invalid', reason }) as const;
      const usual = (): Verified => {
        chain.mine();
        if (random.chance(weather.verifyUnavailable)) return { outcome: 'unavailable' };
        if (chain.endOf(payment) !== null) return invalid(nonceUsed.cause);
        return Number(payment.validBefore) <= chain.seconds
          ? invalid('payment_expired')
          : { outcome: 'valid' };
      };
      return verifies.next(payment) ?? hooks.carry('verify', usual);
    },
    verifySignature: async () => ({ outcome: 'valid' }),
    async settle(payment) {
      asked('settle');
      const scripted = settles.next(payment);
      if (scripted !== undefined) return scripted;
      const { answer, ms } = await hooks.carry('settle', () => settleNow(payment));
      await hooks.sleep(Math.min(ms, SETTLE_LIMIT_MS));
      // What became of its transaction meanwhile: the payer may have cancelled in front of it.
      if (answer?.outcome === 'settled' && chain.hasFailed(answer.transaction)) {
        const cause = 'invalid_exact_evm_transaction_failed';
        return { outcome: 'unknown', cause, transaction: answer.transaction };
      }
      return answer !== null && ms <= SETTLE_LIMIT_MS
        ? answer
        : { outcome: 'unknown', cause: 'settle_no_answer', transaction: null };
    },
    balanceOf: () =>
      hooks.carry('balanceOf', () => (random.chance(weather.nodeUnavailable) ? null : funds.balance)),
    async lookUp(payment) {
      asked('lookUp');
      const usual = (): ChainFinding =>
        random.chance(weather.nodeUnavailable) ? { outcome: 'unavailable' } : chain.lookUp(payment);
      return lookUps.next(payment) ?? hooks.carry('lookUp', usual);
    },
    health: async () => ({ ok: true }),
  } satisfies Payments;
  return {
    ...payments,
    funds,
    calls,
    get ledger() {
      return chain.ledger;
    },
    /** Moves the money, as a settle that worked does. Throws if it moved before. */
    move: (payment: Authorization) =>
      ({ outcome: 'settled', transaction: chain.payAtOnce(payment) }) as const,
    /** What judging the terms, and judging a new payment, answers next. */
    scriptTerms: (...more: typeof terms) => void terms.push(...more),
    scriptNew: (...more: typeof judged) => void judged.push(...more),
    scriptVerify: verifies.add,
    scriptSettle: settles.add,
    scriptLookUp: lookUps.add,
  };
}
