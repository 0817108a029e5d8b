// What the chain shows of an authorization that this log has not reserved, or has seen rejected.
import { type ChainFinding, type Payment, paymentSettled, reservationIn } from '#src/domain/payment/state.ts';
import { Fault, type Refused, refused } from '#src/domain/refusal.ts';
import { isoNow } from '#src/lib/iso.ts';
import type { Payments } from '#src/ports/payments.ts';
import { append, type JournalDeps, PAYMENT, type View } from '#src/usecases/process/stream.ts';
import type { Call } from './execution-call.ts';
import { findKnown, type LookUpDeps } from './idempotency.ts';

type EarlierUseDeps = JournalDeps & LookUpDeps & { readonly payments: Pick<Payments, 'lookUp'> };

export const notVerified = () =>
  new Fault('facilitator_unavailable', 'The payment could not be verified: nothing was charged.', {
    retryAfterSeconds: 5,
  });

/**
 * Of a run's payment that is valid: the authorization has lived long, and whatever has used it before this log reserved it
 * pays for nothing here. `verified` false: what the chain shows is recorded.
 */
export async function demandUnused(
  deps: EarlierUseDeps,
  { lookup }: Pick<Call, 'lookup'>,
): Promise<{ readonly verified: boolean } | Refused> {
  const known = await findKnown(deps, lookup);
  const view = known.kind === 'new' ? known.streams.payment : null;
  if (view === null) return { verified: known.kind === 'new' };
  const finding = await recordEarlierUse(deps, view);
  if (finding === 'paid') return { verified: false };
  if (finding === 'unavailable') throw notVerified();
  if (finding === null || finding === 'unused') return { verified: true };
  const reason = finding === 'cancelled' ? 'authorization_cancelled' : 'authorization_spent_elsewhere';
  return refused('payment_required', 'The payment is not valid.', { details: { reason } });
}

/**
 * Of a payment that was rejected, or is pledged to a run and not reserved: its transfer may have been mined, and is
 * recorded then. Returns what the chain shows; null: it is another payment, whose stream decides.
 */
export async function recordEarlierUse(
  deps: EarlierUseDeps,
  view: View<Payment> | null,
): Promise<ChainFinding['outcome'] | null> {
  if (view?.state.status !== 'rejected' && view?.state.status !== 'absent') return null;
  const reserved = reservationIn(view.state);
  if (reserved === null) return null;
  const finding = await deps.payments.lookUp(reserved);
  if (finding.outcome === 'paid') {
    const settled = paymentSettled({ reserved }, finding.transaction, 'chain', isoNow(deps));
    await append(deps, PAYMENT, view, [settled]);
  }
  return finding.outcome;
}
