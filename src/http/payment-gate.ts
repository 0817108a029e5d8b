// Who pays, asked before the body is looked at: wallets and crawlers probe with an empty one.
import type { Refused } from '#src/domain/refusal.ts';
import type { PresentedPayment } from '#src/ports/payments.ts';

export type Admitted = {
  /** null: nothing is charged (demo mode). */
  readonly presented: PresentedPayment | null;
  /** Wallet address of the payment; the constant `demo` in demo mode. */
  readonly payer: string;
};

export type PaymentGate = (request: Request) => Promise<Admitted | Refused<'payment_required'>>;

/** Demo mode and free routes: everybody is one payer. */
export const nobodyPays: PaymentGate = async () => ({ presented: null, payer: 'demo' });
