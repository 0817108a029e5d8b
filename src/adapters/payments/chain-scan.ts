// Reads blocks, and the transfers of one asset to a payee, from the chain's node.

import {
  BlockNotFoundError,
  encodeFunctionData,
  type Hex,
  numberToHex,
  type PublicClient,
  pad,
  parseAbi,
  toEventSelector,
} from 'viem';
import type { ChainHealth } from '#src/domain/monitoring/health.ts';
import type { ChainBlock, ChainTransfer } from '#src/domain/payment/reconciliation.ts';
import {
  type ChainScan,
  ChainUnavailable,
  type Scan,
  type ScannedBalance,
  type ScanRequest,
} from '#src/ports/chain-scan.ts';
import type { Clock } from '#src/ports/clock.ts';
import type { AbortSignalLike } from '#src/ports/event-log.ts';
import { type Block, blockBefore, finalBlock } from './chain-blocks.ts';
import {
  type BlockRange,
  CANCELLED,
  LARGEST_RANGE,
  type Log,
  type LogFilter,
  logsCall,
  logsIn,
  placeOf,
  rangeSizes,
  readRanges,
  refusedLogs,
  USED,
} from './chain-logs.ts';
import { demandNetwork, findReceipt, NoAnswer, type NodeClient, queryNode } from './node.ts';
import { type BlockReads, readsWithBlock } from './node-batch.ts';
import { isStateGone } from './node-errors.ts';
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
  const reads = readsWithBlock(rpcUrl);
  const query = <T>(
    ms: number,
    signal: AbortSignalLike | undefined,
    work: (client: NodeClient) => Promise<T>,
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
      let scan: Scan = { to: request.from - 1, hash: '', transfers: [], sent: [], ended: [] };
      const hasRead = () => scan.to >= request.from;
      await readRanges(request, sizes, {
        async read(range) {
          const read = await queryNode(rpcUrl, { ms: RANGE_MS, signal }, (client) =>
            readRange({ client, reads, asset }, { ...request, ...range }),
          );
          scan = {
            to: range.to,
            hash: read.hash,
            transfers: [...scan.transfers, ...read.transfers],
            sent: [...scan.sent, ...read.sent],
            ended: [...scan.ended, ...read.ended],
          };
          return read.transfers.length + read.sent.length;
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
    balanceOf: (payee, block, signal) =>
      query(BLOCK_MS, signal, (client) => readBalance(client, { asset, payee, block })),
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
type Reading = { readonly client: NodeClient; readonly reads: BlockReads; readonly asset: string };

async function readRange({ client, reads, asset }: Reading, range: Range): Promise<Omit<Scan, 'to'>> {
  /** Of all answers about this range: those of nodes with another block would not belong together. */
  let hash: Hex | null = null;
  async function logsOf(...topics: LogFilter['topics'][]): Promise<(readonly Log[])[]> {
    const filters = topics.map((one) => ({ asset, topics: one }));
    const calls = filters.map((filter) => logsCall(filter, range));
    const { results, block } = await reads.read(client, calls, range.to).catch(refusedLogs);
    if (hash !== null && block.hash !== hash) throw new NoAnswer('replicas_differ');
    hash = block.hash;
    return filters.map((filter, i) => logsIn(results[i], filter, range));
  }
  const payee = topicOf(range.payee);
  // Three calls with that of the block, which is what some providers take in one batch.
  const [received = [], out = []] = await logsOf([[TRANSFER], null, [payee]], [[TRANSFER], [payee]]);
  const paid = received
    .filter(({ data }) => data.length === 66)
    .map((log) => ({ ...log, sender: addressOf(log.topics[1]), amount: BigInt(log.data) }))
    // Anyone can have a token write a transfer of nothing in the name of another.
    .filter(({ sender, amount }) => amount > 0n && sender !== range.payee);
  const sent = out
    .filter(({ data, topics }) => data.length === 66 && addressOf(topics[2]) !== range.payee)
    .map(({ block, data }) => ({ block, amount: BigInt(data) }));
  const authorizers = [...new Set([...paid.map(({ sender }) => sender), ...range.payers])];
  const ended: Log[] = [];
  for (let i = 0; i < authorizers.length; i += ADDRESSES) {
    const some = authorizers.slice(i, i + ADDRESSES).map(topicOf);
    const [logs = []] = await logsOf([[USED, CANCELLED], some]);
    ended.push(...logs);
  }
  const used = new Map(ended.filter(({ topics }) => topics[0] === USED).map((log) => [placeOf(log), log]));
  const payers = new Set(range.payers);
  return {
    hash: lowerHex(hash ?? ''),
    sent,
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

const BALANCE_OF = parseAbi(['function balanceOf(address owner) view returns (uint256)']);

type Held = { readonly asset: string; readonly payee: string; readonly block: number };

async function readBalance(client: NodeClient, { asset, payee, block }: Held): Promise<ScannedBalance> {
  const data = encodeFunctionData({ abi: BALANCE_OF, args: [lowerHex(payee)] });
  const call = {
    method: 'eth_call' as const,
    params: [{ to: lowerHex(asset), data }, numberToHex(block)] as const,
  };
  try {
    const answer: unknown = await client.request({ ...call, params: [...call.params] });
    if (typeof answer !== 'string' || !/^0x[0-9a-f]{64}$/i.test(answer)) throw new NoAnswer('malformed');
    return { kind: 'known', amount: BigInt(answer) };
  } catch (error) {
    if (isStateGone(error)) return { kind: 'state_gone' };
    throw error;
  }
}

const topicOf = (address: string): Hex => pad(lowerHex(address));
const addressOf = (topic: string | undefined): string => `0x${(topic ?? '').slice(-40)}`;
