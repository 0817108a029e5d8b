// What becomes of a payment once its settle call was made: the evidence that a call has, and what is recorded for it.
import { type EventOf, event } from '../events.ts';
import {
  type BoundPayment,
  type ChainFinding,
  isBound,
  isReturned,
  type Payment,
  paymentRejected,
  paymentSettled,
  reconcile,
  type SettleEnd,
} from './state.ts';

/** A settle call's answer. Unless it is `settled`, the chain decides. */
export type SettleAnswer =
  | { readonly outcome: 'settled'; readonly transaction: string }
  /** A final refusal. `reason`: its code. */
  | { readonly outcome: 'rejected'; readonly reason: string }
  /** Everything else. `cause`: a code; `transaction`: the hash in the answer, null if it contains none. */
  | { readonly outcome: 'unknown'; readonly cause: string; readonly transaction: string | null };

export type Inconclusive = Exclude<SettleAnswer, { outcome: 'settled' }>;

export function settlementUnknown(
  { reserved: { jobId } }: Pick<BoundPayment, 'reserved'>,
  answer: Inconclusive,
  at: string,
): EventOf<'SettlementUnknown'> {
  const [cause, transaction] =
    answer.outcome === 'rejected' ? [answer.reason, null] : [answer.cause, answer.transaction];
  return event('SettlementUnknown', { jobId, cause, transaction, unknownAt: at });
}

/**
 * What an inconclusive answer and the chain prove together; null: nothing yet. A final refusal counts only as the answer to
 * the first and only settle call (`first`), and only if the chain agrees that the authorization is unused: after a lost
 * answer it may be caused by our own success.
 */
export function concludeSettlement(
  answer: Inconclusive,
  finding: ChainFinding,
  payment: Pick<BoundPayment, 'reserved'>,
  { first, at }: { readonly first: boolean; readonly at: string },
): SettleEnd | null {
  const proven = reconcile(finding, payment, at);
  if (proven !== null || !first || answer.outcome !== 'rejected' || finding.outcome !== 'unused')
    return proven;
  return paymentRejected(payment, answer.reason, 'facilitator', at);
}

export type Evidence = {
  /** Of its settle call; null: it made none. */
  readonly answer: SettleAnswer | null;
  /** null: the chain was not asked. */
  readonly finding: ChainFinding | null;
  /** The answer is that of the payment's first settle call. */
  readonly first: boolean;
  /** Another call has written to the payment since the settle call: it was not the only one. */
  readonly isOvertaken: boolean;
  /** The answer is recorded already. */
  readonly isNoted: boolean;
  /** RFC 3339. */
  readonly at: string;
};

export type SettlementStep =
  | { readonly kind: 'append'; readonly fact: SettleEnd | EventOf<'SettlementUnknown'> }
  /** The stream has the charge, or the payment is another job's, has ended, or buys nothing any more. */
  | { readonly kind: 'elsewhere' }
  /** Nothing is proven yet. */
  | { readonly kind: 'open' };

export const isOf = (payment: Payment, jobId: string): payment is BoundPayment =>
  isBound(payment) && payment.reserved.jobId === jobId;

/**
 * What follows from the evidence for a payment as its stream has it now. If the reservation has ended or is another job's,
 * only "the money is in" is still a fact: it is the reservation's, whichever job's call moved it. The same applies to a
 * charge that was found missing meanwhile, which may have bought its job.
 */
export function nextOfSettlement(payment: Payment, jobId: string, evidence: Evidence): SettlementStep {
  const { status } = payment;
  if (status === 'absent' || status === 'settled' || isReturned(payment)) return { kind: 'elsewhere' };
  const isOurs = isOf(payment, jobId);
  const fact = factOf(payment, evidence);
  const isFoundMissing = payment.status === 'missing' && evidence.isOvertaken;
  if ((!isOurs || isFoundMissing) && fact?.type !== 'PaymentSettled') return { kind: 'elsewhere' };
  return fact === null ? { kind: 'open' } : { kind: 'append', fact };
}

function factOf(
  payment: Pick<BoundPayment, 'reserved'>,
  { answer, finding, first, isOvertaken, isNoted, at }: Evidence,
): SettleEnd | EventOf<'SettlementUnknown'> | null {
  if (answer?.outcome === 'settled') return paymentSettled(payment, answer.transaction, 'facilitator', at);
  if (answer === null) return finding && reconcile(finding, payment, at);
  const only = { first: first && !isOvertaken, at };
  const end = finding && concludeSettlement(answer, finding, payment, only);
  return end ?? (isNoted ? null : settlementUnknown(payment, answer, at));
}
