// The chain as an operator's command reads it: its package is large, so import this when it is used.
import { isSettledBy, rpcChain } from '#src/adapters/payments/chain.ts';
import { findTransfers } from '#src/adapters/payments/refund-transfers.ts';
import type { Logger } from '#src/ports/logger.ts';
import type { CompleteRequest } from '#src/usecases/payments/complete-refund.ts';
import type { ResolveChain } from '#src/usecases/payments/resolve-payment.ts';

/** Each call is bounded in time and never throws. */
export function operatorChain(
  rpcUrl: string,
  logger: Logger,
): ResolveChain & Pick<CompleteRequest, 'findTransfers'> {
  return {
    ...rpcChain({ rpcUrl, logger }),
    isSettledBy: (payment, transaction) => isSettledBy(rpcUrl, payment, transaction),
    findTransfers: (transaction) => findTransfers(rpcUrl, transaction),
  };
}
