// Whether a new payment's time window fits: not over, not far ahead, already begun.
import type { Refused } from '../../domain/refusal.ts';
import type { PresentedPayment } from '../../ports/payments.ts';
import { carriedOf, no } from './x402-present.ts';

/** What a settlement may take: a facilitator refuses less (exact scheme, EVM). */
const SHORTEST_SECONDS = 6;
/** A longer one would hold an unknown settlement open for as long. */
const LONGEST_SECONDS = 300;

export function judgeTimeWindow(
  payment: PresentedPayment,
  nowMs: number,
): Refused<'payment_required'> | null {
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
