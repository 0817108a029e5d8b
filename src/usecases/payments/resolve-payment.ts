// Resolves a payment whose fate is open: the chain is queried, and what it shows is recorded. Only without a usable answer
// is the statement of the operator recorded instead.
import type { PaymentReserved } from '#src/domain/events/payment.ts';
import {
  isResolvable,
  type OperatorStatement,
  type PaymentResolution,
  resolveByChain,
  resolveByHand,
} from '#src/domain/payment/resolve.ts';
import type { ChainFinding, Payment } from '#src/domain/payment/state.ts';
import { iso } from '#src/lib/iso.ts';
import type { Payments } from '#src/ports/payments.ts';
import { decide, type JournalDeps, PAYMENT } from '#src/usecases/process/stream.ts';

export type ResolveChain = Pick<Payments, 'lookUp'> & {
  /** Whether the transaction contains the transfer of this authorization to its payee; null: no usable answer. */
  isSettledBy(payment: PaymentReserved, transaction: string): Promise<boolean | null>;
};

export type ResolveRequest = {
  /** Name of the payment's stream. */
  readonly id: string;
  /** null: what the chain shows. */
  readonly statement: OperatorStatement | null;
};

export type Resolved = { readonly status: Payment['status'] } & (
  | PaymentResolution
  /** The statement is not recorded: the chain has an answer, `finding`. */
  | { readonly kind: 'chain_answers'; readonly finding: ChainFinding['outcome'] }
  /** The transaction that the statement names does not contain the transfer of this authorization. */
  | { readonly kind: 'other_transaction' }
);

/** If another process appends to the payment's stream first, it is read again. */
export async function resolvePayment(
  deps: JournalDeps & { readonly chain: ResolveChain },
  { id, statement }: ResolveRequest,
): Promise<Resolved> {
  const { answer } = await decide(deps, PAYMENT, id, async ({ state }) => {
    const resolved = await resolve(deps, state, statement);
    return { events: resolved.kind === 'recorded' ? [resolved.event] : [], answer: resolved };
  });
  return answer;
}

async function resolve(
  { chain, clock }: JournalDeps & { readonly chain: ResolveChain },
  payment: Payment,
  statement: OperatorStatement | null,
): Promise<Resolved> {
  const { status } = payment;
  if (payment.status === 'absent' || !isResolvable(payment)) return { status, kind: 'nothing_to_resolve' };
  const { reserved } = payment;
  const stated = statement?.verdict.kind === 'settled' ? statement.verdict.transaction : null;
  const named = stated ?? ('transaction' in payment ? payment.transaction : null);
  const finding = await chain.lookUp(reserved, { transaction: named });
  const now = () => iso(clock.now());
  if (statement === null) return { status, ...resolveByChain(payment, finding, now()) };
  if (finding.outcome === 'paid' && finding.transaction === stated)
    return { status, ...resolveByChain(payment, finding, now()) };
  if (finding.outcome !== 'unavailable') return { status, kind: 'chain_answers', finding: finding.outcome };
  if (stated !== null) {
    const isIts = await chain.isSettledBy(reserved, stated);
    if (isIts === false) return { status, kind: 'other_transaction' };
    const paid = { outcome: 'paid', transaction: stated } as const;
    if (isIts === true) return { status, ...resolveByChain(payment, paid, now()) };
  }
  return { status, ...resolveByHand(payment, statement, now()) };
}
