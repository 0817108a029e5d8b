// The chain as an audit reads it, from one node.
import { type ChainAudit, ChainUnavailable } from '#src/ports/chain-scan.ts';
import type { Clock } from '#src/ports/clock.ts';
import { lookUpOnce } from './chain.ts';
import { LARGEST_RANGE, rangeSizes } from './chain-logs.ts';
import { chainScan, unavailable } from './chain-scan.ts';
import { networkOf, queryNode } from './node.ts';
import { findTransfers } from './refund-transfers.ts';

const CALL_MS = 8000;

export function chainAudit(rpcUrl: string, clock: Pick<Clock, 'monotonic'>): ChainAudit {
  const sizes = rangeSizes(LARGEST_RANGE);
  return {
    network: () => queryNode(rpcUrl, { ms: CALL_MS }, networkOf).catch(unavailable),
    // The network is that of the node: only rounds of it are compared.
    scanOf: (asset) => chainScan({ rpcUrl, network: '', asset, confirmations: null, clock }),
    async transfersIn(transaction) {
      // What is recorded was confirmed when it was recorded.
      const found = await findTransfers(rpcUrl, transaction, 0);
      if (found.outcome === 'unavailable') throw new ChainUnavailable('rpc_failed');
      return found.outcome === 'found' ? found.transfers : null;
    },
    lookUp: (payment, transaction) => lookUpOnce(rpcUrl, { payment, transaction, sizes }).catch(unavailable),
  };
}
