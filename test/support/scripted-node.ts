import type { ServerResponse } from 'node:http';
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
  /** Methods that fail, each with this answer. */
  fails: ReadonlyMap<string, RpcFailure>;
  /** The answer to a request for logs of too many blocks. */
  tooLarge: RpcFailure;
  /** The answer to every batch; null: batches are taken. */
  batch: RpcFailure | null;
  /** The last block of each replica behind the address, which take turns; a replica has no later one. Empty: one, with all. */
  replicas: readonly number[];
  /** Transactions whose logs are left out. */
  forgets: ReadonlySet<string>;
  /** No state of earlier blocks is kept. */
  stateFrom: number;
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

/** An answer that fails: with `code` a JSON-RPC error, otherwise a body that is no JSON. */
export type RpcFailure =
  | { readonly status: number }
  | {
      readonly code: number;
      readonly message: string;
      readonly data?: string;
      /** Of the response; 200 unless given. */
      readonly status?: number;
    };

/** Answers a request, or a part of a batch, with the failure. */
export class FailedCall extends Error {
  readonly failure: RpcFailure;
  constructor(failure: RpcFailure) {
    super('fails as scripted');
    this.failure = failure;
  }
}

type RpcCall = { readonly id: number; readonly method: string; readonly params?: unknown[] };

/**
 * Answers one request or a batch. `call` returns the result of one call, undefined if it is not to be answered, or throws
 * `FailedCall`.
 */
export function answerCalls(
  response: ServerResponse,
  body: RpcCall | readonly RpcCall[],
  call: (one: RpcCall) => unknown,
): void {
  let status = 200;
  const answers: object[] = [];
  for (const one of [body].flat() as readonly RpcCall[]) {
    const { id } = one;
    try {
      const result = call(one);
      if (result === undefined) return;
      answers.push({ jsonrpc: '2.0', id, result });
    } catch (error) {
      if (!(error instanceof FailedCall)) throw error;
      const { failure } = error;
      status = failure.status ?? status;
      if (!('code' in failure)) return void response.writeHead(failure.status).end('<html>no JSON</html>');
      const { code, message, data } = failure;
      answers.push({ jsonrpc: '2.0', id, error: { code, message, ...(data !== undefined && { data }) } });
    }
  }
  sendJson(response, Array.isArray(body) ? answers : answers[0], status);
}

export type NodeOptions = {
  readonly head?: number;
  readonly timeOf?: (block: number) => number;
  readonly receipt?: readonly NodeLog[];
};
const BALANCE_OF = '0x70a08231';
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
    fails: new Map(),
    tooLarge: { code: -32602, message: 'query exceeds max block range' },
    batch: null,
    replicas: [],
    forgets: new Set(),
    stateFrom: 0,
    limitedFrom: Number.POSITIVE_INFINITY,
    limitedWith: 429,
    isLoose: false,
    block: {},
    hangs: new Set(),
  };
  const ranges: (readonly [from: number, to: number])[] = [];
  const batches: string[][] = [];
  const asked: { readonly method: string; readonly filter: Partial<Filter> | undefined }[] = [];

  let requests = 0;
  /** The last block of the replica that answers. */
  let end = head;
  const block = (number: number) =>
    number < 0 || number > end
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
    if (to - from + 1 > faults.maxBlocks) throw new FailedCall(faults.tooLarge);
    const isIn = ({ blockNumber }: NodeLog) =>
      blockNumber === null || (blockNumber >= from && blockNumber <= Math.min(to, end));
    return logs.filter(
      (log) =>
        !faults.forgets.has(log.transactionHash) &&
        (faults.isLoose === true || (isIn(log) && (faults.isLoose !== false || matches(log, filter)))),
    );
  }
  /** By the transfers, whatever logs are left out. */
  function balanceOf(owner: string, at: string): Hex {
    const number = at === 'latest' ? end : Number(at);
    if (number > end) throw new FailedCall({ code: -32000, message: 'header not found' });
    if (number < faults.stateFrom)
      throw new FailedCall({
        code: -32000,
        message: 'missing trie node 1f (path ) state 0x1f is not available',
      });
    let balance = 0n;
    for (const { topics, data, blockNumber } of logs) {
      if (topics[0] !== TRANSFER || blockNumber === null || blockNumber > number) continue;
      if (topics[2] === owner) balance += BigInt(data);
      if (topics[1] === owner) balance -= BigInt(data);
    }
    return numberToHex(balance < 0n ? 0n : balance, { size: 32 });
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
      if (at === 'latest') return block(end);
      if (at !== 'safe') return block(Number(at));
      if (faults.safe === 'unknown') throw new FailedCall({ code: -32602, message: 'invalid block tag' });
      return block(Math.min(faults.safe, end));
    },
    eth_getBlockByHash: ([hash]: [Hex]) => block(Number(BigInt(hash) - 0xb10c0000n)),
    eth_call: ([{ data }, at]: [{ data: Hex }, string]) =>
      data.startsWith(BALANCE_OF) ? balanceOf(`0x${data.slice(10)}`, at) : pad('0x1'),
    eth_getLogs: ([filter]: [Filter]) => logsOf(filter).map(wire),
    eth_getTransactionReceipt([hash]: [string]) {
      const found = receipt.filter(({ transactionHash }) => transactionHash === hash).map(wire);
      return found.length === 0 && receipt === logs ? null : { ...found[0], status: '0x1', logs: found };
    },
  };
  const server = await loopbackServer(async (request, response) => {
    const body = await jsonOf<RpcCall | RpcCall[]>(request);
    const { replicas } = faults;
    end = replicas[requests++ % Math.max(1, replicas.length)] ?? head;
    const { batch } = faults;
    if (Array.isArray(body)) batches.push(body.map(({ method }) => method));
    if (Array.isArray(body) && batch !== null) {
      const [one] = body;
      const fail = () => {
        throw new FailedCall(batch);
      };
      return one && answerCalls(response, one, fail);
    }
    answerCalls(response, body, ({ method, params = [] }) => {
      const [filter] = params as Partial<Filter>[];
      asked.push({ method, filter });
      if (faults.hangs.has(method)) return undefined;
      const isLimited = method === 'eth_getLogs' && Number(filter?.toBlock) >= faults.limitedFrom;
      if (isLimited) throw new FailedCall({ status: faults.limitedWith });
      const failure = faults.fails.get(method);
      if (failure !== undefined) throw new FailedCall(failure);
      return answers[method]?.(params as never) ?? null;
    });
  });
  return {
    url: server.url,
    logs,
    faults,
    /** All requests, also those that were refused. */
    asked,
    /** The methods of each batch. */
    batches: batches as readonly (readonly string[])[],
    answers,
    ranges: ranges as readonly (readonly [from: number, to: number])[],
    [Symbol.asyncDispose]: server.down,
  };
}
