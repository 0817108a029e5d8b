// Payments in demo mode: nobody is asked for money, so nothing is ever presented, verified or settled.
import type { Payments } from '../../ports/payments.ts';

/** The use case runs the same way as with payments; it only never gets a payment to hand to this adapter. */
export function demoPayments(): Payments {
  return {
    mode: 'demo',
    judgeTerms: () => null,
    judgeNew: () => null,
    verify: async () => ({ outcome: 'valid' }),
    settle: async () => ({ outcome: 'settled', transaction: null }),
    lookUp: async () => ({ outcome: 'no_chain' }),
    health: async () => null,
  };
}
