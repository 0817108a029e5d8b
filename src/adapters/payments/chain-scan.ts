// Reads blocks, and the transfers of one asset to a payee, from the chain's node. Some nodes filter logs loosely, refuse
// large ranges or answer for blocks that they do not have yet: each log is checked, and ranges shrink until they are taken.

import {
  BlockNotFoundError,
  type Hex,
  HttpRequestError,
  type LogTopic,
  numberToHex,
  type PublicClient,
  pad,
  type RpcLog,
  TimeoutError,
  TransactionReceiptNotFoundError,
  toEventSelector,
} from 'viem';
import type { ChainHealth } from '#src/domain/monitoring/health.ts';
import type { ChainBlock, ChainTransfer } from '#src/domain/payment/reconciliation.ts';
import { type ChainScan, ChainUnavailable, type Scan, type ScanRequest } from '#src/ports/chain-scan.ts';
import type { Clock } from '#src/ports/clock.ts';
import type { AbortSignalLike } from '#src/ports/event-log.ts';
import { blockBefore } from './chain.ts';
import { NoAnswer, queryNode } from './node.ts';
import { lowerHex } from './requirements.ts';

export type ChainScanOptions = {
  readonly rpcUrl: string;
  /** CAIP-2, `eip155:…`. */
  readonly network: string;
  /** Lower case. */
  readonly asset: string;
  /** Blocks before the last one; null: the node's `safe` block. */
  readonly confirmations: number | null;
  readonly clock: Pick<Clock, 'monotonic'>;
};

/** Time limits: of a block, and of one range of logs. */
const BLOCK_MS = 8000;
const RANGE_MS = 10_000;
const HEALTH_MS = 2000;
const HEALTH_CACHED_MS = 10_000;
/** After this a scan ends with the blocks that it has read. */
const SCAN_MS = 30_000;
/** The search of a block by its time takes some 40 calls. */
const SEARCH_MS = 60_000;

export function chainScan({ rpcUrl, network, asset, confirmations, clock }: ChainScanOptions): ChainScan {
  const ranges = rangeSizes();
  const query = async <T>(
    ms: number,
    signal: AbortSignalLike | undefined,
    work: (client: PublicClient) => Promise<T>,
  ): Promise<T> => {
    try {
      return await queryNode(rpcUrl, { ms, signal }, work);
    } catch (error) {
      throw error instanceof NoAnswer ? new ChainUnavailable(error.code) : error;
    }
  };

  async function safeBlock(client: PublicClient): Promise<ChainBlock> {
    const [chainId, latest] = await Promise.all([client.getChainId(), client.getBlock()]);
    if (`eip155:${chainId}` !== network) throw new NoAnswer('other_chain');
    if (confirmations === null) return shown(await taggedBlock(client));
    const number = latest.number - BigInt(confirmations);
    return shown(
      number === latest.number ? latest : await client.getBlock({ blockNumber: number > 0n ? number : 0n }),
    );
  }

  let last: { readonly at: number; readonly health: Promise<ChainHealth> } | null = null;
  const lookAtHealth = (): Promise<ChainHealth> =>
    query(HEALTH_MS, undefined, safeBlock).then(
      () => ({ ok: true }),
      (error: unknown) => ({ ok: false, problem: problemOf(error) }),
    );

  return {
    network,
    asset,
    health() {
      const at = clock.monotonic();
      if (last === null || at - last.at >= HEALTH_CACHED_MS) last = { at, health: lookAtHealth() };
      return last.health;
    },
    safeBlock: (signal) => query(BLOCK_MS, signal, safeBlock),
    block: (number, signal) => query(BLOCK_MS, signal, (client) => findBlock(client, number)),
    blockBefore: (time, signal) =>
      query(SEARCH_MS, signal, async (client) =>
        Number(await blockBefore(client, BigInt(time), await client.getBlock())),
      ),
    blockOf: (transaction, signal) => query(BLOCK_MS, signal, (client) => findBlockOf(client, transaction)),
    async scan(request, signal) {
      const until = clock.monotonic() + SCAN_MS;
      const found: Scan = { to: request.from - 1, transfers: [], ended: [] };
      let scan = found;
      while (scan.to < request.to && scan.transfers.length < request.maxTransfers) {
        const from = scan.to + 1;
        const to = Math.min(request.to, from + ranges.size() - 1);
        const isLate = clock.monotonic() > until;
        if (isLate && scan.to >= request.from) break;
        try {
          const read = await query(RANGE_MS, signal, (client) =>
            readRange(client, asset, { ...request, from, to }),
          );
          scan = {
            to,
            transfers: [...scan.transfers, ...read.transfers],
            ended: [...scan.ended, ...read.ended],
          };
          ranges.taken(read.transfers.length);
        } catch (error) {
          if (
            !(error instanceof ChainUnavailable) ||
            signal?.aborted ||
            isLate ||
            !ranges.refused(to - from + 1)
          )
            throw error;
        }
      }
      return scan;
    },
  };
}

function problemOf(error: unknown) {
  const code = error instanceof ChainUnavailable ? error.code : '';
  return code === 'other_chain' || code === 'no_safe_block' ? code : 'no_answer';
}

/** Public nodes take 500 to 10,000 blocks at once, and refuse more, or too many logs. */
const FIRST_RANGE = 100;
const LARGEST_RANGE = 2000;
/** Logs of one answer that are enough. */
const ENOUGH = 250;

/** Ranges after which a limit that was found is exceeded once more. */
const PATIENCE = 50;

/** Blocks of the next range: grows while answers are small, and is halved when one is refused. */
function rangeSizes() {
  let size = FIRST_RANGE;
  let limit = LARGEST_RANGE;
  let atLimit = 0;
  return {
    size: () => size,
    taken(transfers: number): void {
      if (transfers > ENOUGH) {
        size = Math.max(1, Math.floor(size / 2));
        return;
      }
      if (size === limit && ++atLimit >= PATIENCE) {
        limit = Math.min(LARGEST_RANGE, limit * 2);
        atLimit = 0;
      }
      size = Math.min(limit, size * 2);
    },
    /** false: not even one block is taken. */
    refused(blocks: number): boolean {
      size = Math.max(1, Math.floor(blocks / 2));
      limit = size;
      atLimit = 0;
      return blocks > 1;
    },
  };
}

type Numbered = { readonly number: bigint; readonly hash: Hex; readonly timestamp: bigint };

const shown = ({ number, hash, timestamp }: Numbered): ChainBlock => ({
  number: Number(number),
  hash: lowerHex(hash),
  time: Number(timestamp),
});

/** Throws `NoAnswer` if the node has no such block, or does not know the tag. */
async function taggedBlock(client: PublicClient): Promise<Numbered> {
  try {
    return await client.getBlock({ blockTag: 'safe' });
  } catch (error) {
    const isNetwork = error instanceof HttpRequestError || error instanceof TimeoutError;
    throw isNetwork ? error : new NoAnswer('no_safe_block');
  }
}

async function findBlock(client: PublicClient, number: number): Promise<ChainBlock | null> {
  try {
    return shown(await client.getBlock({ blockNumber: BigInt(number) }));
  } catch (error) {
    if (error instanceof BlockNotFoundError) return null;
    throw error;
  }
}

async function findBlockOf(client: PublicClient, transaction: string): Promise<number | null> {
  try {
    return Number((await client.getTransactionReceipt({ hash: transaction as Hex })).blockNumber);
  } catch (error) {
    if (error instanceof TransactionReceiptNotFoundError) return null;
    throw error;
  }
}

// ── logs ────────────────────────────────────────────────────────────────────────────────────────────────

const TRANSFER = toEventSelector('Transfer(address,address,uint256)');
const USED = toEventSelector('AuthorizationUsed(address,bytes32)');
const CANCELLED = toEventSelector('AuthorizationCanceled(address,bytes32)');
/** Addresses that nodes take in one filter. */
const ADDRESSES = 100;

type Log = {
  readonly block: number;
  readonly index: number;
  readonly transaction: string;
  readonly topics: readonly string[];
  readonly data: Hex;
};

type Range = Pick<ScanRequest, 'payee' | 'payers' | 'from' | 'to'>;

async function readRange(
  client: PublicClient,
  asset: string,
  range: Range,
): Promise<Pick<Scan, 'transfers' | 'ended'>> {
  const filter = { ...range, asset };
  const payee = topicOf(range.payee);
  const paid = (await readLogs(client, filter, [[TRANSFER], null, [payee]]))
    .filter(({ topics, data }) => topics.length === 3 && topics[2] === payee && data.length === 66)
    .map((log) => ({ ...log, sender: addressOf(log.topics[1]), amount: BigInt(log.data) }))
    // Anyone can have a token write a transfer of nothing in the name of another.
    .filter(({ sender, amount }) => amount > 0n && sender !== range.payee);
  const authorizers = [...new Set([...paid.map(({ sender }) => sender), ...range.payers])];
  const ended: Log[] = [];
  for (let i = 0; i < authorizers.length; i += ADDRESSES) {
    const some = authorizers.slice(i, i + ADDRESSES).map(topicOf);
    const logs = await readLogs(client, filter, [[USED, CANCELLED], some]);
    ended.push(...logs.filter(({ topics }) => topics.length === 3 && some.includes(topics[1] as Hex)));
  }
  const used = new Map(ended.filter(({ topics }) => topics[0] === USED).map((log) => [placeOf(log, 0), log]));
  const payers = new Set(range.payers);
  return {
    transfers: paid.map(({ sender, amount, ...log }): ChainTransfer => {
      // USDC writes the use of an authorization right before its transfer.
      const { topics = [] } = used.get(placeOf(log, -1)) ?? {};
      const nonce = addressOf(topics[1]) === sender ? (topics[2] ?? null) : null;
      return { transaction: log.transaction, block: log.block, sender, amount, nonce };
    }),
    ended: ended
      .map(({ topics }) => ({ payer: addressOf(topics[1]), nonce: topics[2] ?? '' }))
      .filter(({ payer }) => payers.has(payer)),
  };
}

const placeOf = ({ block, transaction, index }: Log, offset: number): string =>
  `${block} ${transaction} ${index + offset}`;

const topicOf = (address: string): Hex => pad(lowerHex(address));
const addressOf = (topic: string | undefined): string => `0x${(topic ?? '').slice(-40)}`;

/** Each log once, in the order of the chain; without those that the node returned beside what was asked for. */
async function readLogs(
  client: PublicClient,
  { asset, from, to }: Range & { readonly asset: string },
  topics: LogTopic[],
): Promise<readonly Log[]> {
  const answer = await client.request({
    method: 'eth_getLogs',
    params: [{ address: asset as Hex, topics, fromBlock: numberToHex(from), toBlock: numberToHex(to) }],
  });
  if (!Array.isArray(answer)) throw new NoAnswer('malformed');
  const kinds = topics[0] as readonly string[];
  const logs = new Map<string, Log>();
  for (const one of answer) {
    const log = readLog(one);
    const isAsked = lowerHex(one.address) === asset && kinds.includes(log?.topics[0] ?? '');
    if (log !== null && isAsked && log.block >= from && log.block <= to) logs.set(placeOf(log, 0), log);
  }
  return [...logs.values()].sort((a, b) => a.block - b.block || a.index - b.index);
}

/** null: a log of a removed or unfinished block. */
function readLog(log: RpcLog): Log | null {
  const { blockNumber, logIndex, transactionHash, topics, data } = log;
  if (log.removed === true || blockNumber === null || logIndex === null || transactionHash === null)
    return null;
  return {
    block: Number(blockNumber),
    index: Number(logIndex),
    transaction: lowerHex(transactionHash),
    topics: topics.map(lowerHex),
    data,
  };
}
