// Finds in the chain's logs what ended an authorization, without knowing the block: by time, then in small ranges,
// since public nodes answer for few blocks at once.
import {
  decodeEventLog,
  encodeEventTopics,
  type Hex,
  type LogTopic,
  numberToHex,
  type PublicClient,
} from 'viem';
import { lowerHex } from './terms.ts';

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

export type End = { readonly kind: 'used' | 'cancelled'; readonly transaction: Hex };

export type Transfer = { readonly to: string; readonly value: bigint };

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

type WireLog = { readonly address: string; readonly topics: readonly string[] };

/** Topics of an end's log: the event, the payer, the nonce. */
function topicsOf({ payer, nonce }: Pick<Search, 'payer' | 'nonce'>) {
  const args = { authorizer: payer as Hex, nonce: nonce as Hex };
  return {
    used: encodeEventTopics({ abi: [USED], args }),
    cancelled: encodeEventTopics({ abi: [CANCELLED], args }),
  };
}

/** Also asked of what was filtered for: whether money came rests on it, and some nodes filter loosely. */
const isLog = (log: WireLog, asset: Hex, topics: readonly unknown[]): boolean =>
  lowerHex(log.address) === asset &&
  log.topics.length === topics.length &&
  log.topics.every((topic, index) => lowerHex(topic) === topics[index]);

async function endIn(client: PublicClient, search: Search, from: bigint, to: bigint): Promise<End | null> {
  const { asset } = search;
  const { used, cancelled } = topicsOf(search);
  const logs = await client.request({
    method: 'eth_getLogs',
    params: [
      {
        address: asset,
        topics: [[used[0], cancelled[0]], used[1], used[2]] as LogTopic[],
        fromBlock: numberToHex(from),
        toBlock: numberToHex(to),
      },
    ],
  });
  for (const log of logs) {
    if (log.removed === true || log.transactionHash === null) continue;
    const transaction = lowerHex(log.transactionHash);
    if (isLog(log, asset, used)) return { kind: 'used', transaction };
    if (isLog(log, asset, cancelled)) return { kind: 'cancelled', transaction };
  }
  return null;
}

/**
 * What the payer moved right after the use of the authorization, in the same transaction: USDC makes the two logs
 * together, in this order. null: the transaction does not show the two so, and says nothing of where the money went: a
 * token of another build may order its logs otherwise.
 */
export async function transferAfter(
  client: PublicClient,
  search: Pick<Search, 'asset' | 'payer' | 'nonce'>,
  used: End,
): Promise<Transfer | null> {
  const { asset, payer } = search;
  const { logs } = await client.getTransactionReceipt({ hash: used.transaction });
  const at = logs.findIndex((log) => isLog(log, asset, topicsOf(search).used));
  const log = at < 0 ? undefined : logs[at + 1];
  if (log === undefined || lowerHex(log.address) !== asset) return null;
  try {
    const { args } = decodeEventLog({ abi: [TRANSFER], data: log.data, topics: log.topics });
    if (lowerHex(args.from) !== payer) return null;
    return { to: lowerHex(args.to), value: args.value };
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
