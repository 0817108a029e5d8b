// Finds in the chain's logs what ended an authorization, without knowing the block: by time, then in small ranges,
// since public nodes answer for few blocks at once.
import {
  decodeEventLog,
  encodeEventTopics,
  type Hex,
  numberToHex,
  type PublicClient,
  toEventSelector,
} from 'viem';
import { lowerHex } from './x402-terms.ts';

type Block = { readonly number: bigint; readonly timestamp: bigint };

export type Search = {
  readonly asset: Hex;
  readonly payer: string;
  readonly nonce: string;
  /** Unix seconds, decimal. */
  readonly validBefore: string;
  readonly latest: Block;
  /** false: the time is up. */
  readonly goesOn: () => boolean;
};

export type End = {
  readonly kind: 'used' | 'cancelled';
  readonly transaction: Hex;
  readonly logIndex: number;
};

export type Transfer = { readonly from: string; readonly to: string; readonly value: bigint };

/** An authorization is used before its end, and was made at most this long before it. */
const LIFE_SECONDS = 900n;
const RANGE_BLOCKS = 2000n;
/** A cancellation may come at any time after. */
const MAX_RANGES = 60;

const parameters = [
  { name: 'authorizer', type: 'address', indexed: true },
  { name: 'nonce', type: 'bytes32', indexed: true },
] as const;
const USED = { type: 'event', name: 'AuthorizationUsed', inputs: parameters } as const;
const CANCELLED = { type: 'event', name: 'AuthorizationCanceled', inputs: parameters } as const;
const TRANSFER = {
  type: 'event',
  name: 'Transfer',
  inputs: [
    { name: 'from', type: 'address', indexed: true },
    { name: 'to', type: 'address', indexed: true },
    { name: 'value', type: 'uint256', indexed: false },
  ],
} as const;

/** null where no log of it is found in the blocks that were looked at. Throws what the node's client throws. */
export async function findEnd(client: PublicClient, search: Search): Promise<End | null> {
  const { latest, goesOn } = search;
  let from = await blockBefore(client, BigInt(search.validBefore) - LIFE_SECONDS, latest);
  for (let range = 0; range < MAX_RANGES && from <= latest.number && goesOn(); range++) {
    const last = from + RANGE_BLOCKS - 1n;
    const to = last < latest.number ? last : latest.number;
    const end = await endIn(client, search, from, to);
    if (end !== null) return end;
    from = to + 1n;
  }
  return null;
}

async function endIn(
  client: PublicClient,
  { asset, payer, nonce }: Search,
  from: bigint,
  to: bigint,
): Promise<End | null> {
  const [used, authorizer, ofNonce] = encodeEventTopics({
    abi: [USED],
    args: { authorizer: payer as Hex, nonce: nonce as Hex },
  });
  const cancelled = toEventSelector(CANCELLED);
  const logs = await client.request({
    method: 'eth_getLogs',
    params: [
      {
        address: asset,
        topics: [[used, cancelled], authorizer ?? null, ofNonce ?? null] as never,
        fromBlock: numberToHex(from),
        toBlock: numberToHex(to),
      },
    ],
  });
  const [log] = logs.filter(({ removed }) => removed !== true);
  if (log === undefined || log.transactionHash === null || log.logIndex === null) return null;
  return {
    kind: log.topics[0] === cancelled ? 'cancelled' : 'used',
    transaction: lowerHex(log.transactionHash),
    logIndex: Number(log.logIndex),
  };
}

/** The asset's Transfer that stands right after the use of an authorization; null where something else does. */
export async function transferAfter(client: PublicClient, asset: Hex, used: End): Promise<Transfer | null> {
  const receipt = await client.getTransactionReceipt({ hash: used.transaction });
  const log = receipt.logs.find(({ logIndex }) => logIndex === used.logIndex + 1);
  if (log === undefined || lowerHex(log.address) !== asset) return null;
  try {
    const { args } = decodeEventLog({ abi: [TRANSFER], data: log.data, topics: log.topics });
    return { from: lowerHex(args.from), to: lowerHex(args.to), value: args.value };
  } catch {
    return null;
  }
}

/**
 * A block at or before `time` (Unix seconds), at most one range from it: back from the head in doubling steps, since
 * nearly every look-up is about the last minutes, then by halves.
 */
async function blockBefore(client: PublicClient, time: bigint, latest: Block): Promise<bigint> {
  const timeOf = async (blockNumber: bigint) => (await client.getBlock({ blockNumber })).timestamp;
  let after = latest.number;
  let step = 512n;
  let before = after > step ? after - step : 0n;
  while (before > 0n && (await timeOf(before)) > time) {
    after = before;
    step *= 2n;
    before = before > step ? before - step : 0n;
  }
  while (after - before > RANGE_BLOCKS / 2n) {
    const middle = (before + after) / 2n;
    if ((await timeOf(middle)) > time) after = middle;
    else before = middle;
  }
  return before;
}
