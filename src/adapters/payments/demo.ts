// Payments in demo mode: calls are free, so no payment is presented, verified or settled.
import { ALLOWED } from '#src/domain/refusal.ts';
import type { Payments } from '#src/ports/payments.ts';

/** Only `mode` and `health` are used: in demo mode the use case never has a payment. */
export function demoPayments(): Payments {
  return {
    mode: 'demo',
    validateTerms: () => ALLOWED,
    validateNew: () => ALLOWED,
    validateTicket: () => ({ kind: 'ticket', verifiedBy: 'key' }),
    verify: async () => ({ outcome: 'valid' }),
    verifySignature: async () => ({ outcome: 'valid' }),
    settle: async () => ({ outcome: 'unknown', cause: 'demo_mode', transaction: null }),
    lookUp: async () => ({ outcome: 'unavailable' }),
    balanceOf: async () => null,
    health: async () => null,
  };
}
