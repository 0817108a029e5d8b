import { type Hex, numberToHex, pad, toEventSelector } from 'viem';
import { jsonOf, loopbackServer, sendJson } from './loopback-server.ts';

export const TRANSFER = toEventSelector('Transfer(address,address,uint256)');
export const USED = toEventSelector('AuthorizationUsed(address,bytes32)');
export const CANCELLED = toEventSelector('AuthorizationCanceled(address,bytes32)');

export type NodeLog = {
  address: string;
  topics: readonly string[];
  data: string;
  blockNumber: number | null;
  logIndex: number;
  transactionHash: string;
  removed?: boolean;
};

export type NodeFaults = {
  chainId: number;
  safe: number | 'unknown';
  /** Blocks that one request for logs may span. */
  maxBlocks: number;
  /** Methods that are answered with this JSON-RPC error. */
  refuses: ReadonlyMap<string, number>;
  /** Requests for logs with this block or a later one are answered with HTTP 429. */
  limitedFrom: number;
  /** The filter of logs is ignored. */
  isLoose: boolean;
  /** Methods that are never answered. */
  hangs: ReadonlySet<string>;
};

type Filter = { address: string; topics: (string | string[] | null)[]; fromBlock: Hex; toBlock: Hex };

export const HEAD = 10_000;
const T0 = 1_767_323_045;
/** A block each two seconds. */
export const timeOf = (block: number): number => T0 + block * 2;
export const hashOf = (block: number): Hex => pad(numberToHex(block + 0xb10c0000), { size: 32 });

export async function startScriptedNode(logs: NodeLog[] = []) {
  const faults: NodeFaults = {
    chainId: 8453,
    safe: HEAD - 10,
    maxBlocks: Number.POSITIVE_INFINITY,
    refuses: new Map(),
    limitedFrom: Number.POSITIVE_INFINITY,
    isLoose: false,
    hangs: new Set(),
  };
  const ranges: (readonly [from: number, to: number])[] = [];

  const block = (number: number) =>
    number < 0 || number > HEAD
      ? null
      : {
          number: numberToHex(number),
          hash: hashOf(number),
          timestamp: numberToHex(timeOf(number)),
          transactions: [],
        };
  const matches = ({ address, topics }: NodeLog, filter: Filter) =>
    address.toLowerCase() === filter.address.toLowerCase() &&
    filter.topics.every((asked, i) => asked === null || [asked].flat().includes(topics[i] ?? ''));

  function logsOf(filter: Filter): readonly NodeLog[] {
    const [from, to] = [Number(filter.fromBlock), Number(filter.toBlock)];
    ranges.push([from, to]);
    if (to - from + 1 > faults.maxBlocks) throw new Error('query exceeds max block range');
    const isIn = ({ blockNumber }: NodeLog) =>
      blockNumber === null || (blockNumber >= from && blockNumber <= to);
    return logs.filter((log) => faults.isLoose || (isIn(log) && matches(log, filter)));
  }
  const wire = (log: NodeLog) => ({
    ...log,
    blockNumber: log.blockNumber === null ? null : numberToHex(log.blockNumber),
    blockHash: hashOf(log.blockNumber ?? 0),
    logIndex: numberToHex(log.logIndex),
    transactionIndex: '0x0',
  });

  const answers: Record<string, (params: never) => unknown> = {
    eth_chainId: () => numberToHex(faults.chainId),
    eth_getBlockByNumber([at]: [string]) {
      if (at === 'latest') return block(HEAD);
      if (at !== 'safe') return block(Number(at));
      if (faults.safe === 'unknown') throw new Error('invalid block tag');
      return block(faults.safe);
    },
    eth_getBlockByHash: ([hash]: [Hex]) => block(Number(BigInt(hash) - 0xb10c0000n)),
    eth_getLogs: ([filter]: [Filter]) => logsOf(filter).map(wire),
    eth_getTransactionReceipt([hash]: [string]) {
      const log = logs.find(({ transactionHash }) => transactionHash === hash);
      return log === undefined ? null : { ...wire(log), status: '0x1', logs: [wire(log)] };
    },
  };
  const server = await loopbackServer(async (request, response) => {
    const asked = await jsonOf<{ id: number; method: string; params?: unknown[] }>(request);
    const { id, method, params = [] } = asked;
    if (faults.hangs.has(method)) return;
    const [filter] = params as Partial<Filter>[];
    const isLimited = method === 'eth_getLogs' && Number(filter?.toBlock) >= faults.limitedFrom;
    if (isLimited) return sendJson(response, {}, 429);
    const code = faults.refuses.get(method);
    if (code !== undefined)
      return sendJson(response, { jsonrpc: '2.0', id, error: { code, message: 'refused' } });
    let answer: object;
    try {
      answer = { result: answers[method]?.(params as never) };
    } catch (error) {
      answer = { error: { code: -32602, message: (error as Error).message } };
    }
    sendJson(response, { jsonrpc: '2.0', id, ...answer });
  });
  return {
    url: server.url,
    logs,
    faults,
    ranges: ranges as readonly (readonly [from: number, to: number])[],
    [Symbol.asyncDispose]: server.down,
  };
}
