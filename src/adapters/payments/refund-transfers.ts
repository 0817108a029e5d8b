// All transfers of one transaction, of whatever token.
import { type Hex, TransactionReceiptNotFoundError } from 'viem';
import type { FoundTransfers } from '#src/domain/payment/refund.ts';
import { queryNode } from './node.ts';
import { readTransfer } from './transfer-log.ts';

const LOOK_UP_MS = 8000;

/** `transaction`: `0x` and 64 hex digits, in a block. Bounded in time, never throws. */
export async function findTransfers(rpcUrl: string, transaction: string): Promise<FoundTransfers> {
  try {
    return await queryNode(rpcUrl, { ms: LOOK_UP_MS, signal: undefined }, async (client) => {
      const [chainId, receipt] = await Promise.all([
        client.getChainId(),
        client.getTransactionReceipt({ hash: transaction as Hex }).catch(absent),
      ]);
      const network = `eip155:${chainId}`;
      if (receipt === null) return { outcome: 'missing', network };
      if (receipt.status !== 'success') return { outcome: 'failed' };
      const { timestamp } = await client.getBlock({ blockHash: receipt.blockHash });
      const transfers = receipt.logs.flatMap((log) => {
        const transfer = readTransfer(log);
        if (transfer === null) return [];
        const { asset, from: sender, to: recipient, value: amount } = transfer;
        return [{ asset, sender, recipient, amount }];
      });
      return { outcome: 'found', network, atSeconds: Number(timestamp), transfers };
    });
  } catch {
    return { outcome: 'unavailable' };
  }
}

function absent(error: unknown): null {
  if (error instanceof TransactionReceiptNotFoundError) return null;
  throw error;
}
