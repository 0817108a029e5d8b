// The chain as an operator's command compares the books with it: its packages are large, so import this when it is used.
import { rpcChain } from '#src/adapters/payments/chain.ts';
import { chainScan } from '#src/adapters/payments/chain-scan.ts';
import { assetOf, lowerHex, UnusableTerms } from '#src/adapters/payments/requirements.ts';
import { systemClock } from '#src/adapters/runtime/clock.ts';
import { type Config, ConfigError } from '#src/config.ts';
import type { ChainAccount } from '#src/domain/payment/reconciliation.ts';
import type { ChainScan } from '#src/ports/chain-scan.ts';
import type { Logger } from '#src/ports/logger.ts';
import type { Payments } from '#src/ports/payments.ts';

type Compared = {
  readonly account: ChainAccount;
  readonly scan: ChainScan;
  readonly lookUp: Payments['lookUp'];
};

/** The account and the node of the configuration. Throws `ConfigError`. */
export function configuredChain(x402: NonNullable<Config['x402']>, logger: Logger): Compared {
  const { network, rpcUrl, confirmations } = x402;
  const payee = lowerHex(x402.payTo);
  const { address: asset } = assetIn(x402);
  const scan = chainScan({ rpcUrl, network, asset, confirmations, clock: systemClock() });
  return { account: { network, asset, payee }, scan, ...rpcChain({ rpcUrl, logger }) };
}

function assetIn(x402: NonNullable<Config['x402']>) {
  try {
    return assetOf(x402);
  } catch (error) {
    if (!(error instanceof UnusableTerms)) throw error;
    throw new ConfigError([{ variable: 'X402_ASSET', problem: error.message }]);
  }
}
