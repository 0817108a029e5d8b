// Records an operator's verdict on an unconfirmed payment that is still open.
import type { EventOf } from '#src/domain/events.ts';
import { type BoundPayment, isBound, type Payment, reconcile } from '#src/domain/payment/state.ts';
import { WrongExpectedVersion } from '#src/ports/event-log.ts';
import { appendUntilKnown, envelope, type JournalDeps, loadPayment } from '#src/usecases/event-streams.ts';

export type OperatorVerdict =
  /** `transaction`: 0x and 64 hex digits; null if it is unknown. */
  { readonly kind: 'settled'; readonly transaction: string | null } | { readonly kind: 'not_settled' };

export type Resolved =
  | { readonly outcome: 'resolved'; readonly jobId: string }
  | { readonly outcome: 'nothing_to_resolve'; readonly status: Payment['status'] }
  /** Its authorization, or a settle call in progress, may still move the money. `validBefore`: Unix seconds. */
  | { readonly outcome: 'too_early'; readonly validBefore: number };

/** `stream`: the payment's. If another process appends to it first, it is read again. */
export async function resolvePayment(
  deps: JournalDeps,
  stream: string,
  verdict: OperatorVerdict,
): Promise<Resolved> {
  for (;;) {
    const { state, expected } = await loadPayment(deps.log, stream);
    if (!isBound(state) || state.status === 'settled')
      return { outcome: 'nothing_to_resolve', status: state.status };
    const { jobId, validBefore } = state.reserved;
    const event = eventOf(verdict, state, deps.clock.now());
    if (event === null) return { outcome: 'too_early', validBefore: Number(validBefore) };
    try {
      await appendUntilKnown(deps, stream, expected, envelope(deps, [event], jobId));
    } catch (error) {
      if (error instanceof WrongExpectedVersion) continue;
      throw error;
    }
    return { outcome: 'resolved', jobId };
  }
}

/** null: it may still settle, by the same rule as for a check of the chain. */
function eventOf(
  verdict: OperatorVerdict,
  payment: BoundPayment,
  nowMs: number,
): EventOf<'PaymentSettled' | 'PaymentRejected'> | null {
  const { jobId } = payment.reserved;
  const at = new Date(nowMs).toISOString();
  const evidence = 'operator' as const;
  if (verdict.kind === 'settled') {
    const { transaction } = verdict;
    return {
      type: 'PaymentSettled',
      data: { v: 2, jobId, transaction, evidence, settledAt: at, statement: null },
    };
  }
  const unused = { outcome: 'unused', chainTimeSeconds: Math.floor(nowMs / 1000) } as const;
  if (reconcile(unused, payment, at) === null) return null;
  const reason = 'operator_not_settled';
  return {
    type: 'PaymentRejected',
    data: { v: 2, jobId, reason, evidence, rejectedAt: at, statement: null },
  };
}
