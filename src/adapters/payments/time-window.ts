// The times of an authorization, compared with ours. A stock client whose clock is wrong signs one that is refused however
// often it signs again, so each refusal states both times and their difference.
import { LIMITS } from '#src/domain/limits.ts';
import type { PaymentReason } from '#src/domain/payment/reasons.ts';
import { ALLOWED, type Allowed, type Refused, refused } from '#src/domain/refusal.ts';
import { RUN_TIMES } from '#src/domain/schedule/limits.ts';
import { iso } from '#src/lib/iso.ts';
import type { PresentedPayment, RunWindow, TicketVerdict } from '#src/ports/payments.ts';
import { MAX_TIMEOUT_SECONDS } from './requirements.ts';

/** Unix seconds, decimal. */
type Times = { readonly validAfter: string; readonly validBefore: string };
type Refusal = Refused<'payment_required'>;

export const refuse = (reason: PaymentReason | 'payment_required', message: string): Refusal =>
  refused('payment_required', message, { details: { reason } });

const { min: SHORTEST_SECONDS, max: LONGEST_SECONDS } = LIMITS.authorizationSeconds;

/** Of a payment that is settled now. */
export function validateTimeWindow({ validAfter, validBefore }: Times, nowMs: number): Allowed | Refusal {
  const now = Math.floor(nowMs / 1000);
  const left = Number(validBefore) - now;
  const clock = clockAdvice(left - MAX_TIMEOUT_SECONDS);
  if (left <= SHORTEST_SECONDS)
    return refuse(
      'authorization_expired',
      `the authorization expires too soon to be settled: its validBefore is ${compared(left, nowMs)}. ${clock}`,
    );
  if (left > LONGEST_SECONDS)
    return refuse(
      'authorization_too_far_ahead',
      `the authorization must expire within ${LONGEST_SECONDS} seconds: its validBefore is ${compared(left, nowMs)}. ${clock}`,
    );
  const early = Number(validAfter) - now;
  if (early > 0)
    return refuse(
      'authorization_not_yet_valid',
      `the authorization is not valid yet: its validAfter is ${compared(early, nowMs)}. If it was signed now, set the clock of the machine that signed it`,
    );
  return ALLOWED;
}

/** Of a payment that is settled when its run is due. */
export function validateRunWindow(
  { validAfter, validBefore }: Times,
  signer: PresentedPayment['signer'],
  { nowMs, dueMs, untilMs }: RunWindow,
): TicketVerdict | Refusal {
  const now = Math.floor(nowMs / 1000);
  const left = compared(Number(validBefore) - now, nowMs);
  const clock = 'If it was signed now for maxTimeoutSeconds, set the clock of the machine that signed it';
  if (Number(validBefore) < dueMs / 1000 + RUN_TIMES.authorizationLeastSeconds)
    return refuse(
      'authorization_expired',
      `the authorization expires before its run can be settled: its validBefore is ${left}. ${clock}`,
    );
  if (Number(validBefore) > untilMs / 1000 + RUN_TIMES.authorizationMarginSeconds + LONGEST_SECONDS)
    return refuse(
      'authorization_too_far_ahead',
      `the authorization lives much longer than its run needs: its validBefore is ${left}. ${clock}`,
    );
  if (Number(validAfter) > dueMs / 1000)
    return refuse(
      'authorization_not_yet_valid',
      `the authorization is not valid when its run is due: its validAfter is ${compared(Number(validAfter) - now, nowMs)}`,
    );
  if (Number(validAfter) <= nowMs / 1000) return { kind: 'ticket', verifiedBy: 'facilitator' };
  return { kind: 'ticket', verifiedBy: signer === 'contract' ? 'node' : 'key' };
}

const compared = (seconds: number, nowMs: number): string =>
  `${Math.abs(seconds)} s ${seconds < 0 ? 'before' : 'after'} the time of this relay (header Date, ${iso(nowMs)})`;

/** `seconds`: how much later than asked for the authorization ends. */
const clockAdvice = (seconds: number): string =>
  `If it was signed now for ${MAX_TIMEOUT_SECONDS} s, the clock of the machine that signed it is about ${Math.abs(seconds)} s ${seconds < 0 ? 'slow' : 'fast'}: set it, and sign a new payment`;
