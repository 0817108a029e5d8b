// Payments as they are presented.
import { createHash } from 'node:crypto';
import { identityText } from '#src/domain/events/payment.ts';
import type { PresentedPayment } from '#src/ports/payments.ts';
import { paymentReserved } from '#test/support/given/given-events.ts';

/** A payment as presented, with the facts of the sample `PaymentReserved`. */
export function presentedPayment(changes: Partial<PresentedPayment> = {}): PresentedPayment {
  const {
    v: _,
    jobId: __,
    fingerprint: ___,
    owner: ____,
    reservedAt: _____,
    ...facts
  } = paymentReserved().data;
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
