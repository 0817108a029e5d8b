// Whether a payment that nobody knows yet is good for us now: what it pays and to whom, then its time window: not over,
// not far ahead, already begun. Of a known one none of it is asked again.
import { LIMITS } from '#src/domain/limits.ts';
import type { Refused } from '#src/domain/refusal.ts';
import type { Payments, PresentedPayment } from '#src/ports/payments.ts';
import { carriedOf, no } from './present.ts';
import type { Terms } from './terms.ts';

const { min: SHORTEST_SECONDS, max: LONGEST_SECONDS } = LIMITS.authorizationSeconds;

type Verdict = Refused<'payment_required'> | null;

export function judgesOf(terms: Terms): Pick<Payments, 'judgeTerms' | 'judgeNew'> {
  const judgeTerms = ({ payTo, amount }: PresentedPayment): Verdict => {
    if (payTo !== terms.payTo) {
      return no('recipient_mismatch', `the authorization must pay ${terms.requirements.payTo}`);
    }
    if (amount !== terms.amount) {
      return no('amount_mismatch', `the authorization must be of exactly ${terms.amount}`);
    }
    return null;
  };
  return {
    judgeTerms,
    judgeNew: (payment, nowMs) => judgeTerms(payment) ?? judgeTimeWindow(payment, nowMs),
  };
}

function judgeTimeWindow(payment: PresentedPayment, nowMs: number): Verdict {
  const { validAfter, validBefore } = carriedOf(payment).signed.authorization;
  const now = Math.floor(nowMs / 1000);
  if (Number(validBefore) <= now + SHORTEST_SECONDS) {
    return no('authorization_expired', 'the authorization is over, or too near its end to be settled');
  }
  if (Number(validBefore) > now + LONGEST_SECONDS) {
    return no(
      'authorization_too_far_ahead',
      `the authorization must end within ${LONGEST_SECONDS} seconds: sign a shorter one`,
    );
  }
  if (Number(validAfter) > now) return no('authorization_not_yet_valid', 'the authorization begins later');
  return null;
}
