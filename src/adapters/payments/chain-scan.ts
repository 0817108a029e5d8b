// Reads blocks, and the transfers of one asset to a payee, from the chain's node.

import { BlockNotFoundError, type Hex, type PublicClient, pad, toEventSelector } from 'viem';
import type { ChainHealth } from '#src/domain/monitoring/health.ts';
import type { ChainBlock, ChainTransfer } from '#src/domain/payment/reconciliation.ts';
import { type ChainScan, ChainUnavailable, type Scan, type ScanRequest } from '#src/ports/chain-scan.ts';
import type { Clock } from '#src/ports/clock.ts';
import type { AbortSignalLike } from '#src/ports/event-log.ts';
import { type Block, blockBefore, finalBlock } from './chain-blocks.ts';
import {
  type BlockRange,
  CANCELLED,
  LARGEST_RANGE,
  type Log,
  placeOf,
  rangeSizes,
  readLogs,
  readRanges,
  USED,
} from './chain-logs.ts';
import { demandNetwork, findReceipt, NoAnswer, queryNode } from './node.ts';
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
/** Of the first range of logs: a busy payee has many in few blocks. */
const FIRST_RANGE = 100;

export function chainScan({ rpcUrl, network, asset, confirmations, clock }: ChainScanOptions): ChainScan {
  const sizes = rangeSizes(FIRST_RANGE);
  const query = <T>(
    ms: number,
    signal: AbortSignalLike | undefined,
    work: (client: PublicClient) => Promise<T>,
  ): Promise<T> => queryNode(rpcUrl, { ms, signal }, work).catch(unavailable);

  async function safeBlock(client: PublicClient): Promise<ChainBlock> {
    await demandNetwork(client, network);
    return shown(await finalBlock(client, confirmations));
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
        Number(await blockBefore(client, BigInt(time), await client.getBlock(), LARGEST_RANGE / 2)),
      ),
    blockOf: (transaction, signal) => query(BLOCK_MS, signal, (client) => findBlockOf(client, transaction)),
    async scan(request, signal) {
      const until = clock.monotonic() + SCAN_MS;
      const isLate = () => clock.monotonic() > until;
      let scan: Scan = { to: request.from - 1, transfers: [], ended: [] };
      const hasRead = () => scan.to >= request.from;
      await readRanges(request, sizes, {
        async read(range) {
          const read = await queryNode(rpcUrl, { ms: RANGE_MS, signal }, (client) =>
            readRange(client, asset, { ...request, ...range }),
          );
          const transfers = [...scan.transfers, ...read.transfers];
          scan = { to: range.to, transfers, ended: [...scan.ended, ...read.ended] };
          return read.transfers.length;
        },
        isDone: () => scan.transfers.length >= request.maxTransfers || (isLate() && hasRead()),
        mayDivide: () => !signal?.aborted && (!isLate() || hasRead()),
      }).catch((error: unknown) => {
        // The blocks that were read are complete; the next scan meets the problem at its start.
        const isLeft = error instanceof NoAnswer && error.code !== 'stopped' && hasRead();
        if (!isLeft) unavailable(error);
      });
      return scan;
    },
  };
}

/** Throws the error as users of the port read it. */
export function unavailable(error: unknown): never {
  throw error instanceof NoAnswer ? new ChainUnavailable(error.code) : error;
}

function problemOf(error: unknown) {
  const code = error instanceof ChainUnavailable ? error.code : '';
  return code === 'other_chain' || code === 'no_safe_block' ? code : 'no_answer';
}

/** The last second of the year 9999. */
const LAST_SECOND = 253_402_300_799;

/** What is read of a block is recorded in events, which nothing can change later. Throws `NoAnswer` if it is malformed. */
function shown({ number, hash, timestamp }: Block): ChainBlock {
  const block = { number: Number(number), hash: lowerHex(hash), time: Number(timestamp) };
  const isTime = Number.isSafeInteger(block.time) && block.time <= LAST_SECOND;
  if (!/^0x[0-9a-f]{64}$/.test(block.hash) || !Number.isSafeInteger(block.number) || !isTime)
    throw new NoAnswer('malformed');
  return block;
}

async function findBlock(client: PublicClient, number: number): Promise<ChainBlock | null> {
  try {
    const block = shown(await client.getBlock({ blockNumber: BigInt(number) }));
    if (block.number !== number) throw new NoAnswer('malformed');
    return block;
  } catch (error) {
    if (error instanceof BlockNotFoundError) return null;
    throw error;
  }
}

async function findBlockOf(client: PublicClient, transaction: string): Promise<number | null> {
  const receipt = await findReceipt(client, transaction as Hex);
  return receipt && Number(receipt.blockNumber);
}

// ── logs ────────────────────────────────────────────────────────────────────────────────────────────────

const TRANSFER = toEventSelector('Transfer(address,address,uint256)');
/** Addresses that nodes take in one filter. */
const ADDRESSES = 100;

type Range = Pick<ScanRequest, 'payee' | 'payers'> & BlockRange;

async function readRange(
  client: PublicClient,
  asset: string,
  range: Range,
): Promise<Pick<Scan, 'transfers' | 'ended'>> {
  const payee = topicOf(range.payee);
  const paid = (await readLogs(client, { asset, topics: [[TRANSFER], null, [payee]] }, range))
    .filter(({ data }) => data.length === 66)
    .map((log) => ({ ...log, sender: addressOf(log.topics[1]), amount: BigInt(log.data) }))
    // Anyone can have a token write a transfer of nothing in the name of another.
    .filter(({ sender, amount }) => amount > 0n && sender !== range.payee);
  const authorizers = [...new Set([...paid.map(({ sender }) => sender), ...range.payers])];
  const ended: Log[] = [];
  for (let i = 0; i < authorizers.length; i += ADDRESSES) {
    const some = authorizers.slice(i, i + ADDRESSES).map(topicOf);
    ended.push(...(await readLogs(client, { asset, topics: [[USED, CANCELLED], some] }, range)));
  }
  const used = new Map(ended.filter(({ topics }) => topics[0] === USED).map((log) => [placeOf(log), log]));
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

const topicOf = (address: string): Hex => pad(lowerHex(address));
const addressOf = (topic: string | undefined): string => `0x${(topic ?? '').slice(-40)}`;
