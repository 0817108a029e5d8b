// All transfers of one transaction, of whatever token.
import type { Hex, PublicClient } from 'viem';
import type { FoundTransfers } from '#src/domain/payment/refund.ts';
import { finalBlock } from './chain-blocks.ts';
import { findReceipt, NoAnswer, networkOf, queryNode } from './node.ts';
import { readTransfer } from './transfer-log.ts';

const LOOK_UP_MS = 8000;

/**
 * `transaction`: `0x` and 64 hex digits. It is found once its block counts, by the rule of the comparison with the chain
 * (`confirmations`: as in `finalBlock`; 0: in any block). Bounded in time, never throws.
 */
export async function findTransfers(
  rpcUrl: string,
  transaction: string,
  confirmations: number | null,
): Promise<FoundTransfers> {
  try {
    return await queryNode(rpcUrl, { ms: LOOK_UP_MS }, (client) =>
      read(client, transaction as Hex, confirmations),
    );
  } catch (error) {
    const isUnknownTag = error instanceof NoAnswer && error.code === 'no_safe_block';
    return { outcome: isUnknownTag ? 'no_safe_block' : 'unavailable' };
  }
}

async function read(client: PublicClient, hash: Hex, confirmations: number | null): Promise<FoundTransfers> {
  const [network, receipt] = await Promise.all([networkOf(client), findReceipt(client, hash)]);
  if (receipt === null) return { outcome: 'missing', network };
  if (receipt.status !== 'success') return { outcome: 'failed' };
  const [{ timestamp }, final] = await Promise.all([
    client.getBlock({ blockHash: receipt.blockHash }),
    finalBlock(client, confirmations),
  ]);
  const blocks = Number(receipt.blockNumber - final.number);
  if (blocks > 0) return { outcome: 'unconfirmed', blocks };
  const transfers = receipt.logs.flatMap((log) => {
    const transfer = readTransfer(log);
    if (transfer === null) return [];
    const { asset, from: sender, to: recipient, value: amount } = transfer;
    return [{ asset, sender, recipient, amount }];
  });
  return { outcome: 'found', network, atSeconds: Number(timestamp), transfers };
}
