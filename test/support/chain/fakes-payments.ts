// A facilitator and a chain as a test drives them: money moves once per nonce, and answers come as scripted.
import { createHash } from 'node:crypto';
import { identityText } from '#src/domain/events/payment.ts';
import type { SettleAnswer } from '#src/domain/payment/settlement.ts';
import type { ChainFinding } from '#src/domain/payment/state.ts';
import { ALLOWED } from '#src/domain/refusal.ts';
import type { Authorization, Payments, PresentedPayment, Verified } from '#src/ports/payments.ts';
import { paymentReserved, T0 } from '#test/support/given/given-events.ts';
import type { Trace } from '#test/support/world/fakes.ts';

/** A payment as presented, with the facts of the sample `PaymentReserved`. */
export function presentedPayment(changes: Partial<PresentedPayment> = {}): PresentedPayment {
  const { scheme, network, asset, amount, payTo, payer, nonce, validBefore, payloadHash, x402Version } =
    paymentReserved().data;
  const facts = {
    scheme,
    network,
    asset,
    amount,
    payTo,
    payer,
    nonce,
    validBefore,
    payloadHash,
    x402Version,
  };
  return {
    hash: hashOf(facts),
    ...facts,
    signer: 'recovered',
    identifier: null,
    carried: { signature: 'in memory only' },
    ...changes,
  };
}

/** Another authorization of the same payer; `digit` distinguishes it from the others. */
export function otherPayment(digit = '4', changes: Partial<PresentedPayment> = {}): PresentedPayment {
  const facts = { nonce: `0x${digit}`, ...changes };
  return presentedPayment({ hash: hashOf({ ...paymentReserved().data, ...facts }), ...facts });
}

const hashOf = (facts: Parameters<typeof identityText>[0]): string =>
  createHash('sha256').update(identityText(facts)).digest('hex');

/** By the chain's clock, the sample payment is still valid. */
const unused = { outcome: 'unused', chainTimeSeconds: T0 / 1000 } as const;
export const nonceUsed = { outcome: 'unknown', cause: 'nonce_used', transaction: null } as const;

type Scripted<T, P = PresentedPayment> = T | ((payment: P) => T | Promise<T>);

export type ScriptedPayments = Payments & {
  readonly calls: { judge: number; verify: number; settle: number; lookUp: number };
  /** Of every payer; null: the node does not answer. */
  readonly funds: { balance: bigint | null };
  /** Nonces whose money has moved, with their transaction: never twice. */
  readonly ledger: ReadonlyMap<string, string>;
  /** Moves the money, as a settle that worked did. */
  move(payment: PresentedPayment): { readonly outcome: 'settled'; readonly transaction: string };
  /** What judging the terms, and judging a new payment, answers next. */
  scriptTerms(...answers: readonly ReturnType<Payments['validateTerms']>[]): void;
  scriptNew(...answers: readonly ReturnType<Payments['validateNew']>[]): void;
  scriptVerify(...answers: readonly Scripted<Verified>[]): void;
  scriptSettle(...answers: readonly Scripted<SettleAnswer>[]): void;
  scriptLookUp(...answers: readonly Scripted<ChainFinding, Authorization>[]): void;
};

/** Settles once, then says that the nonce is used; the chain shows what has moved. `trace`: gets `settle` and `lookUp`; `steps`: the other calls. */
export function scriptedPayments(trace: Trace = [], steps: Trace = []): ScriptedPayments {
  const funds = { balance: 1_000_000_000n as bigint | null };
  const calls = { judge: 0, verify: 0, settle: 0, lookUp: 0 };
  const ledger = new Map<string, string>();
  const terms: ReturnType<Payments['validateTerms']>[] = [];
  const judged: ReturnType<Payments['validateNew']>[] = [];
  const verifies: Scripted<Verified>[] = [];
  const settles: Scripted<SettleAnswer>[] = [];
  const lookUps: Scripted<ChainFinding, Authorization>[] = [];
  const move = ({ nonce }: PresentedPayment) => {
    if (ledger.has(nonce)) throw new Error('the money moved twice');
    const transaction = `0x${String(ledger.size + 1).padStart(64, '0')}`;
    ledger.set(nonce, transaction);
    return { outcome: 'settled', transaction } as const;
  };
  return {
    mode: 'x402',
    funds,
    calls,
    ledger,
    move,
    scriptTerms: (...more) => {
      terms.push(...more);
    },
    scriptNew: (...more) => {
      judged.push(...more);
    },
    scriptVerify: (...more) => {
      verifies.push(...more);
    },
    scriptSettle: (...more) => {
      settles.push(...more);
    },
    scriptLookUp: (...more) => {
      lookUps.push(...more);
    },
    validateTerms: () => terms.shift() ?? ALLOWED,
    validateTicket: () => ({ kind: 'ticket', verifiedBy: 'facilitator' }),
    validateNew() {
      calls.judge++;
      steps.push('payment');
      return judged.shift() ?? ALLOWED;
    },
    async verify(payment) {
      calls.verify++;
      steps.push('verify');
      const answer = verifies.shift();
      if (typeof answer === 'function') return answer(payment);
      if (answer !== undefined) return answer;
      return ledger.has(payment.nonce) ? { outcome: 'invalid', reason: 'nonce_used' } : { outcome: 'valid' };
    },
    verifySignature: async () => ({ outcome: 'valid' }),
    async settle(payment) {
      calls.settle++;
      trace.push('settle');
      const answer = settles.shift();
      if (typeof answer === 'function') return answer(payment);
      if (answer !== undefined) return answer;
      return ledger.has(payment.nonce) ? nonceUsed : move(payment);
    },
    async lookUp(payment) {
      calls.lookUp++;
      trace.push('lookUp');
      const answer = lookUps.shift();
      if (typeof answer === 'function') return answer(payment);
      const transaction = ledger.get(payment.nonce);
      return answer ?? (transaction === undefined ? unused : { outcome: 'paid', transaction });
    },
    balanceOf: async () => funds.balance,
    health: async () => ({ ok: true }),
  };
}
