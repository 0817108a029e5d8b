// Payments on the wire as a test drives them: a header that reads `paid` is a payment, any other is refused.
import type { Route } from '#src/domain/event-fields.ts';
import type { AskedFor } from '#src/domain/payment/price.ts';
import { refused } from '#src/domain/refusal.ts';
import type {
  ChallengeRequest,
  PaymentProtocol,
  ReadHeader,
  Settlement,
} from '#src/ports/payment-protocol.ts';
import type { Trace } from '#test/support/world/fakes.ts';
import { presentedPayment } from './fakes-payments.ts';

/** By protocol version. */
export const PAID = { 1: { 'x-payment': 'paid' }, 2: { 'payment-signature': 'paid' } } as const;
export const GARBAGE = { 'payment-signature': '¥¥not a payment' } as const;
/** The reason of the refusal of garbage. */
export const UNREADABLE = 'invalid_payload';

export type FakeProtocol = PaymentProtocol & {
  readonly challenged: readonly ChallengeRequest[];
  readonly settlements: readonly Settlement[];
};

/** `trace`: gets each call's name. */
export function fakeProtocol(trace: Trace = []): FakeProtocol {
  const challenged: ChallengeRequest[] = [];
  const settlements: Settlement[] = [];
  return {
    challenged,
    settlements,
    askedFor: {
      'execute/webhook': asked('execute/webhook'),
      'execute/guided-webhook': asked('execute/guided-webhook'),
    },
    askedForRun: () => asked('execute/webhook'),
    write: ({ nonce }) => nonce,
    reopen: async () => presentedPayment(),
    isPresented(header) {
      trace.push('isPresented');
      return presentedIn(header) !== null;
    },
    async read(header) {
      trace.push('read');
      const presented = presentedIn(header);
      if (presented?.value === 'paid') return presentedPayment({ x402Version: presented.version });
      return refused('payment_required', 'This is no payment.', { details: { reason: UNREADABLE } });
    },
    async challenge(ask) {
      trace.push('challenge');
      challenged.push(ask);
      const { reason, message, hints } = ask;
      return {
        headers: { 'payment-required': btoa(JSON.stringify({ x402Version: 2, error: reason })) },
        body: {
          x402Version: 1,
          error: reason,
          ...(message === null ? {} : { message }),
          accepts: [requirement(ask.route)],
          ...(hints.length === 0 ? {} : { validation: hints.map((hint) => ({ ...hint })) }),
        },
      };
    },
    async settled(settlement) {
      trace.push('settled');
      settlements.push(settlement);
      const result = btoa(JSON.stringify(settlement));
      const twin = settlement.x402Version === 1 ? { 'x-payment-response': result } : {};
      return { 'payment-response': result, ...twin };
    },
  };
}

/** Where both headers came, the newer version's counts. */
function presentedIn(header: ReadHeader): { readonly version: 1 | 2; readonly value: string } | null {
  const second = header('PAYMENT-SIGNATURE');
  if (second !== null) return { version: 2, value: second };
  const first = header('X-PAYMENT');
  return first === null ? null : { version: 1, value: first };
}

function asked(route: Route): AskedFor {
  const { scheme, amount, payTo, asset, network } = presentedPayment();
  const extra = { name: 'USD Coin', version: '2' };
  return {
    resource: `https://relay.example/api/${route}`,
    accepts: [{ scheme, network, amount, asset, payTo, maxTimeoutSeconds: 120, extra }],
    extensions: {},
  };
}

function requirement(route: Route) {
  const { scheme, amount, payTo, asset } = presentedPayment();
  return {
    scheme,
    network: 'base',
    maxAmountRequired: amount,
    resource: `https://relay.example/api/${route}`,
    description: 'One call.',
    mimeType: 'application/json',
    payTo,
    maxTimeoutSeconds: 120,
    asset,
    extra: { name: 'USD Coin', version: '2' },
  };
}
