// Payments in demo mode: calls are free, so no payment is ever presented, verified or settled.
import type { Payments } from '../../ports/payments.ts';

/** The use case is the same as with payments, and never has one to pass to this adapter. */
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
