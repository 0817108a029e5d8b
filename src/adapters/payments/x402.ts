// Payments by x402, scheme exact on EVM chains, versions 1 and 2: implements the ports `Payments` and `PaymentProtocol`.

import { formatUnits } from 'viem';
import type { AbortSignalLike } from '#src/lib/time.ts';
import { type ChainScan, ChainUnavailable } from '#src/ports/chain-scan.ts';
import type { Clock } from '#src/ports/clock.ts';
import type { Logger } from '#src/ports/logger.ts';
import type { PaymentProtocol } from '#src/ports/payment-protocol.ts';
import type { Payments } from '#src/ports/payments.ts';
import { isPresented, readPayment, reopenPayment, termsValidators, writePayment } from './authorization.ts';
import { rpcChain } from './chain.ts';
import { chainScan } from './chain-scan.ts';
import { facilitator } from './facilitator.ts';
import { facilitatorHealth } from './facilitator-health.ts';
import { facilitatorWatch } from './facilitator-watch.ts';
import { isCleartext, loginHeaders } from './login.ts';
import { checkNode } from './node-check.ts';
import {
  askedFor,
  assetOf,
  type PaidRoutes,
  paymentTerms,
  perRoute,
  pricingOf,
  type X402Settings,
} from './requirements.ts';
import { challengeBuilder, type OfferKey, settlementHeaders } from './responses.ts';
import { walletCode } from './wallet-code.ts';
import { walletSignatures } from './wallet-signature.ts';

type X402Options = {
  /** `confirmations`: blocks before the last one up to which the books are compared; null: the node's `safe` block. */
  readonly x402: X402Settings & { readonly confirmations: number | null };
  /** An origin, without a trailing slash. */
  readonly baseUrl: string;
  readonly routes: PaidRoutes;
  readonly offerKey: OfferKey;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Aborts when the process is asked to stop. */
  readonly stopping?: AbortSignalLike;
};

/** Who presents the payments that were kept for runs of schedules. */
const KEPT = 'runs of schedules';

export type X402 = {
  readonly payments: Payments;
  readonly protocol: PaymentProtocol;
  readonly scan: ChainScan;
  /** Lower case. */
  readonly payee: string;
  /** For people, at the start. */
  describe(): Promise<Described>;
};

/** `balance`: of the payee, in tokens; null: the node gives no usable answer, or keeps no state. */
type Described = {
  readonly price: string;
  readonly payee: string;
  readonly network: string;
  readonly token: string;
  readonly balance: string | null;
};

/**
 * The service answers 402 while facilitator and chain are unavailable. Throws `UnusableTerms` if the settings describe no
 * payment, or the node contradicts them.
 */
export async function x402Payments(options: X402Options): Promise<X402> {
  const { x402, baseUrl, routes, offerKey, clock, logger, stopping } = options;
  const { rpcUrl } = x402;
  const asset = assetOf(x402);
  const node = await checkNode({ rpcUrl, asset, clock, logger, stopping });
  const terms = paymentTerms(x402, asset, node.facts);
  const pricing = pricingOf(terms, baseUrl, routes);
  const facilitatorUrl = x402.facilitatorUrl.replace(/\/+$/, '');
  if (x402.login !== null && isCleartext(facilitatorUrl)) {
    logger.warn('X402_FACILITATOR_URL is not https: anyone on the way can read the login at the facilitator');
  }
  const watch = facilitatorWatch({ clock, logger });
  const calling = { facilitatorUrl, login: await loginHeaders(x402.login, clock), watch, logger };
  const { verify, settle } = facilitator({ ...calling, pricing, timeoutMs: x402.facilitatorTimeoutMs });
  const hasCode = walletCode(rpcUrl, clock);
  const scan = chainScan({ ...x402, ...terms, clock });
  return {
    scan: {
      ...scan,
      async health() {
        const [answers, isChecked] = await Promise.all([scan.health(), node.isChecked()]);
        return answers.ok && !isChecked ? { ok: false, problem: 'unchecked' } : answers;
      },
    },
    payee: terms.payTo,
    async describe() {
      const { payTo: payee, network, priceUsd } = x402;
      const { decimals } = node.facts;
      const balance = await newestBalance(scan, terms.payTo, stopping);
      const inTokens = balance === null ? null : formatUnits(balance, decimals);
      return { price: `$${priceUsd}`, payee, network, token: asset.spelling, balance: inTokens };
    },
    payments: {
      mode: 'x402',
      ...termsValidators(terms),
      // Nothing is charged by a relay that cannot look at the chain.
      verify: async (payment) => ((await node.isChecked()) ? verify(payment) : { outcome: 'unavailable' }),
      settle,
      ...rpcChain({ rpcUrl, logger }),
      ...walletSignatures(rpcUrl, terms),
      health: facilitatorHealth({ ...calling, terms, clock }),
    },
    protocol: {
      askedFor: perRoute(pricing.routes, askedFor),
      askedForRun: (ticket) => askedFor(pricing.ticketOf(ticket)),
      isPresented,
      write: writePayment,
      reopen: (text) => reopenPayment({ terms, hasCode, client: KEPT }, text),
      read: (header, client) => readPayment({ terms, hasCode, client }, header),
      challenge: challengeBuilder({ pricing, offerKey, clock }),
      settled: settlementHeaders({ pricing, offerKey }),
    },
  };
}

/** null: the node gives no usable answer. */
async function newestBalance(
  scan: ChainScan,
  payee: string,
  stopping: AbortSignalLike | undefined,
): Promise<bigint | null> {
  try {
    const { number } = await scan.safeBlock(stopping);
    const balance = await scan.balanceOf(payee, number, stopping);
    return balance.kind === 'known' ? balance.amount : null;
  } catch (error) {
    if (error instanceof ChainUnavailable) return null;
    throw error;
  }
}
