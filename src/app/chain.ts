// The chain as an operator's command reads it: its packages are large, so import this when it is used.
import { isSettledBy, rpcChain } from '#src/adapters/payments/chain.ts';
import { chainAudit } from '#src/adapters/payments/chain-audit.ts';
import { chainScan } from '#src/adapters/payments/chain-scan.ts';
import { findTransfers } from '#src/adapters/payments/refund-transfers.ts';
import { assetOf, lowerHex, UnusableTerms } from '#src/adapters/payments/requirements.ts';
import { systemClock } from '#src/adapters/runtime/clock.ts';
import { type Config, ConfigError } from '#src/config.ts';
import type { ChainAccount } from '#src/domain/payment/reconciliation.ts';
import type { ChainAudit, ChainScan } from '#src/ports/chain-scan.ts';
import type { Logger } from '#src/ports/logger.ts';
import type { Payments } from '#src/ports/payments.ts';
import type { CompleteRequest } from '#src/usecases/payments/complete-refund.ts';
import type { ResolveChain } from '#src/usecases/payments/resolve-payment.ts';

/** Each call is bounded in time and never throws. */
export function operatorChain(
  { rpcUrl, confirmations }: { readonly rpcUrl: string; readonly confirmations: number | null },
  logger: Logger,
): ResolveChain & Pick<CompleteRequest, 'findTransfers'> {
  return {
    ...rpcChain({ rpcUrl, logger }),
    isSettledBy: (payment, transaction) => isSettledBy(rpcUrl, payment, transaction),
    findTransfers: (transaction) => findTransfers(rpcUrl, transaction, confirmations),
  };
}

/** Of any network: the node's. */
export const auditedChain = (rpcUrl: string): ChainAudit => chainAudit(rpcUrl, systemClock());

type ComparedChain = {
  readonly account: ChainAccount;
  readonly scan: ChainScan;
  readonly lookUp: Payments['lookUp'];
};

/** The account and the node of the configuration. Throws `ConfigError`. */
export function comparedChain(x402: NonNullable<Config['x402']>, logger: Logger): ComparedChain {
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
