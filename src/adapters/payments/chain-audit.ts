// The chain as an audit reads it, from one node.
import type { ChainAudit } from '#src/ports/chain-scan.ts';
import { ChainUnavailable } from '#src/ports/chain-scan.ts';
import type { Clock } from '#src/ports/clock.ts';
import { chainScan } from './chain-scan.ts';
import { NoAnswer, queryNode } from './node.ts';
import { findTransfers } from './refund-transfers.ts';

const CALL_MS = 8000;

export function chainAudit(rpcUrl: string, clock: Pick<Clock, 'monotonic'>): ChainAudit {
  return {
    async network() {
      try {
        const chainId = await queryNode(rpcUrl, { ms: CALL_MS, signal: undefined }, (client) =>
          client.getChainId(),
        );
        return `eip155:${chainId}`;
      } catch (error) {
        throw error instanceof NoAnswer ? new ChainUnavailable(error.code) : error;
      }
    },
    // The network is that of the node: only rounds of it are compared.
    scanOf: (asset) => chainScan({ rpcUrl, network: '', asset, confirmations: null, clock }),
    async transfersIn(transaction) {
      // What is recorded was confirmed when it was recorded.
      const found = await findTransfers(rpcUrl, transaction, 0);
      if (found.outcome === 'unavailable') throw new ChainUnavailable('rpc_failed');
      return found.outcome === 'found' ? found.transfers : null;
    },
  };
}
