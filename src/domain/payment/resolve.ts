// What an operator may record of a payment whose fate is open: what the chain shows, or, where the chain gives no usable
// answer, a statement of the operator's own.
import {
  type ChainFinding,
  isMissing,
  isSurelyOver,
  type Payment,
  paymentRejected,
  paymentSettled,
  reconcile,
  type SettleEnd,
} from './state.ts';

export type PaymentResolution =
  | { readonly kind: 'recorded'; readonly event: SettleEnd }
  /** The books are not open: there is nothing to look up. */
  | { readonly kind: 'nothing_to_resolve' }
  /** The chain shows what the books say: the money did not come. */
  | { readonly kind: 'confirmed' }
  /** Its authorization, or a settle call in progress, may still move the money. `validBefore`: Unix seconds. */
  | { readonly kind: 'too_early'; readonly validBefore: number }
  | { readonly kind: 'chain_unavailable' };

const NOTHING: PaymentResolution = { kind: 'nothing_to_resolve' };

/** Whether the chain or the operator may add anything to what is recorded. */
export function isResolvable(payment: Payment): boolean {
  return payment.status !== 'absent' && (!('settled' in payment) || isMissing(payment));
}

/** `at`: RFC 3339. */
export function resolveByChain(payment: Payment, finding: ChainFinding, at: string): PaymentResolution {
  if (payment.status === 'absent' || !isResolvable(payment)) return NOTHING;
  if (finding.outcome === 'unavailable') return { kind: 'chain_unavailable' };
  if (finding.outcome === 'paid')
    return { kind: 'recorded', event: paymentSettled(payment, finding.transaction, 'chain', at) };
  if (payment.status !== 'reserved' && payment.status !== 'retried' && payment.status !== 'unknown')
    return { kind: 'confirmed' };
  const event = reconcile(finding, payment, at);
  if (event !== null) return { kind: 'recorded', event };
  return { kind: 'too_early', validBefore: Number(payment.reserved.validBefore) };
}

/** `transaction`: `0x` and 64 hex digits, lower case. `reason`: why the operator is certain. */
export type OperatorStatement = {
  readonly verdict:
    | { readonly kind: 'settled'; readonly transaction: string }
    | { readonly kind: 'not_settled' };
  readonly reason: string;
};

/** Without an answer of the chain. `at`: RFC 3339. */
export function resolveByHand(
  payment: Payment,
  { verdict, reason }: OperatorStatement,
  at: string,
): PaymentResolution {
  if (payment.status === 'absent' || 'settled' in payment) return NOTHING;
  if (verdict.kind === 'settled')
    return { kind: 'recorded', event: paymentSettled(payment, verdict.transaction, 'operator', at, reason) };
  if (payment.status === 'rejected' || payment.status === 'released') return NOTHING;
  if (!isSurelyOver(payment.reserved, Math.floor(Date.parse(at) / 1000)))
    return { kind: 'too_early', validBefore: Number(payment.reserved.validBefore) };
  const event = paymentRejected(payment, 'operator_not_settled', 'operator', at, reason);
  return { kind: 'recorded', event };
}
