// Payments by x402, scheme exact on EVM chains, versions 1 and 2: implements the ports `Payments` and `PaymentProtocol`.

import type { ChainScan } from '#src/ports/chain-scan.ts';
import type { Clock } from '#src/ports/clock.ts';
import type { Logger } from '#src/ports/logger.ts';
import type { PaymentProtocol } from '#src/ports/payment-protocol.ts';
import type { Payments } from '#src/ports/payments.ts';
import { isPresented, readPayment, termsValidators } from './authorization.ts';
import { rpcChain } from './chain.ts';
import { chainScan } from './chain-scan.ts';
import { facilitator } from './facilitator.ts';
import { facilitatorHealth } from './facilitator-health.ts';
import { facilitatorWatch } from './facilitator-watch.ts';
import { isCleartext, loginHeaders } from './login.ts';
import { askedFor, type PaidRoutes, paymentTerms, pricingOf, type X402Settings } from './requirements.ts';
import { challengeBuilder, type OfferKey, settlementHeaders } from './responses.ts';

type X402Options = {
  /** `confirmations`: blocks before the last one up to which the books are compared; null: the node's `safe` block. */
  readonly x402: X402Settings & { readonly confirmations: number | null };
  /** An origin, without a trailing slash. */
  readonly baseUrl: string;
  readonly routes: PaidRoutes;
  readonly offerKey: OfferKey;
  readonly clock: Clock;
  readonly logger: Logger;
};

export type X402 = {
  readonly payments: Payments;
  readonly protocol: PaymentProtocol;
  readonly scan: ChainScan;
  /** Lower case. */
  readonly payee: string;
};

/** Without network calls: the service starts and answers 402 while facilitator and chain are unavailable. Throws `UnusableTerms`. */
export async function x402Payments(options: X402Options): Promise<X402> {
  const { x402, baseUrl, routes, offerKey, clock, logger } = options;
  const terms = paymentTerms(x402);
  if (!terms.assetIsKnown) {
    const { name, version } = terms.domain;
    logger.warn(
      `X402_ASSET is not known: this service assumes 6 decimals and the EIP-712 domain "${name}", version "${version}"`,
    );
  }
  const pricing = pricingOf(terms, baseUrl, routes);
  const facilitatorUrl = x402.facilitatorUrl.replace(/\/+$/, '');
  if (x402.login !== null && isCleartext(facilitatorUrl)) {
    logger.warn('X402_FACILITATOR_URL is not https: anyone on the way can read the login at the facilitator');
  }
  const watch = facilitatorWatch({ clock, logger });
  const calling = { facilitatorUrl, login: await loginHeaders(x402.login, clock), watch, logger };
  const chain = rpcChain({ rpcUrl: x402.rpcUrl, logger });
  return {
    scan: chainScan({ ...x402, ...terms, clock }),
    payee: terms.payTo,
    payments: {
      mode: 'x402',
      ...termsValidators(terms),
      ...facilitator({ ...calling, pricing, timeoutMs: x402.facilitatorTimeoutMs }),
      lookUp: chain.lookUp,
      health: facilitatorHealth({ ...calling, terms, clock }),
    },
    protocol: {
      askedFor: askedFor(pricing),
      isPresented,
      read: async (header) => readPayment(terms, header),
      challenge: challengeBuilder({ pricing, offerKey, clock }),
      settled: settlementHeaders({ pricing, offerKey }),
    },
  };
}
