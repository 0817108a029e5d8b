// Ends payments that nothing was settled for.
import type { PaymentReleased } from '#src/domain/events/payment.ts';
import { event, type PaymentEvent } from '#src/domain/events.ts';
import { type Payment, reservationIn } from '#src/domain/payment/state.ts';
import { isoNow } from '#src/lib/iso.ts';
import { decide, type JournalDeps, PAYMENT } from '#src/usecases/process/stream.ts';

/** `reason`: a code. `lostKeyTo`: the job that holds the key; null: this is not why. */
type ReleaseFacts = Pick<PaymentReleased, 'jobId' | 'reason' | 'lostKeyTo'>;

/**
 * Ends a payment for which no settle call can have been made, and returns what it is then. `from`: `pledged`, that no call
 * has reserved; `reserved`, by a call that was to settle after a check which it has not passed. Beyond that, money may have
 * moved, and nothing is appended.
 */
export async function releasePayment(
  deps: JournalDeps,
  stream: string,
  from: 'pledged' | 'reserved',
  facts: ReleaseFacts,
): Promise<Payment> {
  const { view } = await decide<Payment, PaymentEvent, null>(deps, PAYMENT, stream, ({ state }) => {
    const isOpen = state.status === (from === 'pledged' ? 'absent' : 'reserved');
    if (!isOpen || reservationIn(state)?.jobId !== facts.jobId) return { events: [], answer: null };
    return { events: [event('PaymentReleased', { ...facts, releasedAt: isoNow(deps) })], answer: null };
  });
  return view.state;
}
