// Payment on a paid route: the payer, the challenge of a 402, the settlement header of a paid answer. The payment
// protocol encodes and decodes the headers; the use case decides whether a payment is accepted for this call.
import type { Route } from '#src/domain/event-fields.ts';
import { isRefused, type Refused, reasonOf } from '#src/domain/refusal.ts';
import { refusalAnswer, STATUS } from '#src/http/response/errors.ts';
import { json } from '#src/http/response/json.ts';
import type { Logger } from '#src/ports/logger.ts';
import type { PaymentProtocol, ReadHeader, TicketOffer, WireHeaders } from '#src/ports/payment-protocol.ts';
import type { PresentedPayment } from '#src/ports/payments.ts';
import type { Execution } from '#src/usecases/execution/execution-call.ts';
import { contextOf, countedAs } from './request-context.ts';
import type { InputFault } from './validation.ts';

export type Payer = {
  /** null: nothing is charged (demo mode). */
  readonly presented: PresentedPayment | null;
  /** Wallet address of the payment; the constant `demo` in demo mode. */
  readonly payer: string;
};

/** `hints`: what the schema refuses in the body, returned with a 402. `body`: as it fits the schema, of a call without a payment. */
export type RouteRefused = Refused & { readonly hints?: readonly InputFault[]; readonly body?: unknown };

export type PaymentGate = {
  /** Nothing is charged, or a payment header is there, readable or not. Looks at the headers alone. */
  isOpen(request: Request): boolean;
  identify(request: Request): Promise<Payer | Refused<'payment_required' | 'invalid_request'>>;
  /** Every `payment_required`, wherever it was said, is a 402 that can be paid; others have the error body. */
  refuse(refusal: RouteRefused, ticket?: TicketOffer): Promise<Response>;
  /** Of an execution that was paid for by the payer of this very call, now or before. */
  settled(execution: Execution, presented: PresentedPayment | null): Promise<WireHeaders>;
};

export type GateDeps = {
  /** null: nothing is charged (demo mode). */
  readonly payments: PaymentProtocol | null;
  readonly logger: Logger;
};

export function paymentGate({ payments, logger }: GateDeps, route: Route) {
  if (payments === null) return nobodyPays;
  const gate: PaymentGate = {
    isOpen: (request) => payments.isPresented(readerOf(request)),
    async identify(request) {
      const presented = await payments.read(readerOf(request), countedAs(contextOf(request).client));
      return isRefused(presented) ? presented : { presented, payer: presented.payer };
    },
    async refuse(refusal, ticket) {
      if (refusal.refused !== 'payment_required') return refusalAnswer(refusal);
      const { hints = [] } = refusal;
      const reason = reasonOf(refusal);
      const message = reason === 'payment_required' ? null : refusal.message;
      const asked = { route, reason, message, hints, ...(ticket && { ticket }) };
      const { headers, body } = await payments.challenge(asked);
      return json(STATUS.payment_required, body, headers);
    },
    async settled({ payment, job }, presented) {
      if (payment === null || presented === null) return {};
      const { x402Version } = presented;
      const delivered = job.status === 'succeeded';
      try {
        return await payments.settled({
          route,
          payment,
          x402Version,
          delivered,
          completedAt: job.completedAt,
        });
      } catch (cause) {
        // The result is valid, and the body names the payment too: a caller that has paid must get it.
        logger.bug('the payment header could not be encoded; the response is sent without it', {
          jobId: job.id,
          cause,
        });
        return {};
      }
    },
  };
  return gate;
}

const nobodyPays: PaymentGate = {
  isOpen: () => true,
  identify: async () => ({ presented: null, payer: 'demo' }),
  refuse: async (refusal) => refusalAnswer(refusal),
  settled: async () => ({}),
};

/** An empty header is none: proxies and clients write one for a value that they do not have. */
function readerOf({ headers }: Request): ReadHeader {
  return (name) => headers.get(name) || null;
}
