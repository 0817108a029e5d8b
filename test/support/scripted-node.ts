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
  /** Requests for logs with this block or a later one are answered with this HTTP status. */
  limitedFrom: number;
  limitedWith: number;
  /** The filter of logs is ignored: all of it, or all but the blocks. */
  isLoose: boolean | 'within the blocks';
  /** Members of each block that differ. */
  block: Readonly<Record<string, string>>;
  /** Methods that are never answered. */
  hangs: ReadonlySet<string>;
};

export type NodeOptions = {
  readonly head?: number;
  readonly timeOf?: (block: number) => number;
  readonly receipt?: readonly NodeLog[];
};
type Asked = { readonly id: number; readonly method: string; readonly params?: unknown[] };
type Filter = { address: string; topics: (string | string[] | null)[]; fromBlock: Hex; toBlock: Hex };

export const HEAD = 10_000;
const T0 = 1_767_323_045;
/** A block each two seconds. */
export const timeOf = (block: number): number => T0 + block * 2;
export const hashOf = (block: number): Hex => pad(numberToHex(block + 0xb10c0000), { size: 32 });

/** `receipt`: the logs of a transaction, where they are others than those of its blocks. */
export async function startScriptedNode(
  logs: NodeLog[] = [],
  { head = HEAD, timeOf: timeAt = timeOf, receipt = logs }: NodeOptions = {},
) {
  const faults: NodeFaults = {
    chainId: 8453,
    safe: HEAD - 10,
    maxBlocks: Number.POSITIVE_INFINITY,
    refuses: new Map(),
    limitedFrom: Number.POSITIVE_INFINITY,
    limitedWith: 429,
    isLoose: false,
    block: {},
    hangs: new Set(),
  };
  const ranges: (readonly [from: number, to: number])[] = [];
  const asked: { readonly method: string; readonly filter: Partial<Filter> | undefined }[] = [];

  const block = (number: number) =>
    number < 0 || number > head
      ? null
      : {
          number: numberToHex(number),
          hash: hashOf(number),
          timestamp: numberToHex(Math.max(0, timeAt(number))),
          transactions: [],
          ...faults.block,
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
    return logs.filter(
      (log) => faults.isLoose === true || (isIn(log) && (faults.isLoose !== false || matches(log, filter))),
    );
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
      if (at === 'latest') return block(head);
      if (at !== 'safe') return block(Number(at));
      if (faults.safe === 'unknown') throw new Error('invalid block tag');
      return block(faults.safe);
    },
    eth_getBlockByHash: ([hash]: [Hex]) => block(Number(BigInt(hash) - 0xb10c0000n)),
    eth_call: () => pad('0x1'),
    eth_getLogs: ([filter]: [Filter]) => logsOf(filter).map(wire),
    eth_getTransactionReceipt([hash]: [string]) {
      const found = receipt.filter(({ transactionHash }) => transactionHash === hash).map(wire);
      return found.length === 0 && receipt === logs ? null : { ...found[0], status: '0x1', logs: found };
    },
  };
  const server = await loopbackServer(async (request, response) => {
    const { id, method, params = [] } = await jsonOf<Asked>(request);
    const [filter] = params as Partial<Filter>[];
    asked.push({ method, filter });
    if (faults.hangs.has(method)) return;
    const isLimited = method === 'eth_getLogs' && Number(filter?.toBlock) >= faults.limitedFrom;
    if (isLimited) return sendJson(response, {}, faults.limitedWith);
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
    /** All requests, also those that were refused. */
    asked,
    ranges: ranges as readonly (readonly [from: number, to: number])[],
    [Symbol.asyncDispose]: server.down,
  };
}
