// A chain's node with blocks and logs as a test makes them up, which filters, limits and fails as scripted.
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { json } from 'node:stream/consumers';
import { type Hex, numberToHex, pad, toEventSelector } from 'viem';

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
    eth_getLogs: ([filter]: [Filter]) => logsOf(filter).map(wire),
    eth_getTransactionReceipt([hash]: [string]) {
      const log = logs.find(({ transactionHash }) => transactionHash === hash);
      return log === undefined ? null : { ...wire(log), status: '0x1', logs: [wire(log)] };
    },
  };
  const server = createServer(async (request, response) => {
    const {
      id,
      method,
      params = [],
    } = (await json(request)) as { id: number; method: string; params?: unknown[] };
    if (faults.hangs.has(method)) return;
    let answer: object;
    try {
      answer = { result: answers[method]?.(params as never) };
    } catch (error) {
      answer = { error: { code: -32602, message: (error as Error).message } };
    }
    response.writeHead(200, { 'content-type': 'application/json' });
    response.end(JSON.stringify({ jsonrpc: '2.0', id, ...answer }));
  });
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    logs,
    faults,
    ranges: ranges as readonly (readonly [from: number, to: number])[],
    [Symbol.asyncDispose]: () =>
      new Promise<void>((closed) => {
        server.close(() => closed());
        server.closeAllConnections();
      }),
  };
}
