// Reads from the chain the amount that a transaction transferred to the payer of a charge.
import {
  createPublicClient,
  decodeEventLog,
  type Hex,
  http,
  type PublicClient,
  TransactionReceiptNotFoundError,
} from 'viem';
import type { FoundTransfer } from '#src/domain/payment/refund.ts';
import { lowerHex } from './requirements.ts';

const CALL_MS = 4000;

const TRANSFER = {
  type: 'event',
  name: 'Transfer',
  inputs: [
    { name: 'from', type: 'address', indexed: true },
    { name: 'to', type: 'address', indexed: true },
    { name: 'value', type: 'uint256', indexed: false },
  ],
} as const;

export type TransferQuery = {
  /** CAIP-2, `eip155:…`. */
  readonly network: string;
  readonly asset: string;
  readonly payer: string;
  readonly transaction: string;
  /** The known transactions of the charges. */
  readonly charges: readonly string[];
  /** Unix seconds: the earliest possible time of a charge. */
  readonly notBefore: number;
};

/** Never throws. `unavailable` also if the endpoint serves another chain. */
export async function findTransfer(rpcUrl: string, query: TransferQuery): Promise<FoundTransfer> {
  const client = createPublicClient({ transport: http(rpcUrl, { timeout: CALL_MS, retryCount: 1 }) });
  try {
    if (`eip155:${await client.getChainId()}` !== query.network) return { outcome: 'unavailable' };
    const receipt = await client.getTransactionReceipt({ hash: query.transaction as Hex });
    if (receipt.status !== 'success') return { outcome: 'failed' };
    const amount = receipt.logs.reduce((sum, log) => sum + movedToPayer(log, query), 0n);
    return { outcome: 'found', amount, afterCharges: await isAfterCharges(client, receipt, query) };
  } catch (error) {
    return { outcome: error instanceof TransactionReceiptNotFoundError ? 'missing' : 'unavailable' };
  }
}

/** Whether the refund follows every known charge in the chain's order, and is not before `notBefore`. */
async function isAfterCharges(
  client: PublicClient,
  refund: { readonly blockNumber: bigint; readonly transactionIndex: number },
  { charges, notBefore }: TransferQuery,
): Promise<boolean> {
  const { timestamp } = await client.getBlock({ blockNumber: refund.blockNumber });
  if (Number(timestamp) < Math.floor(notBefore)) return false;
  for (const hash of charges) {
    const charge = await client.getTransactionReceipt({ hash: hash as Hex });
    const later =
      charge.blockNumber < refund.blockNumber ||
      (charge.blockNumber === refund.blockNumber && charge.transactionIndex < refund.transactionIndex);
    if (!later) return false;
  }
  return true;
}

type Log = { readonly address: string; readonly data: Hex; readonly topics: [] | [Hex, ...Hex[]] };

/** Atomic units; 0 for any log but a transfer of this asset from someone else to the payer. */
function movedToPayer({ address, data, topics }: Log, { asset, payer }: TransferQuery): bigint {
  if (lowerHex(address) !== asset.toLowerCase()) return 0n;
  try {
    const { args } = decodeEventLog({ abi: [TRANSFER], data, topics });
    const [from, to] = [lowerHex(args.from), lowerHex(args.to)];
    return to === payer.toLowerCase() && from !== to ? args.value : 0n;
  } catch {
    return 0n;
  }
}
