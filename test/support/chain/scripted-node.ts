// A node of a chain: JSON-RPC on loopback over logs that a test gives, or over the chain in memory, with what nodes do wrong.
import type { ServerResponse } from 'node:http';
import {
  decodeFunctionData,
  domainSeparator,
  encodeAbiParameters,
  type Hex,
  numberToHex,
  pad,
  parseAbi,
  parseAbiParameters,
  toEventSelector,
} from 'viem';
import { jsonOf, loopbackServer, sendJson } from '#test/support/process/loopback-server.ts';
import { BLOCK_SECONDS, MemoryChain, type Transaction } from './memory-chain.ts';

export const TRANSFER = toEventSelector('Transfer(address,address,uint256)');
export const USED = toEventSelector('AuthorizationUsed(address,bytes32)');
/** USDC on Base. */
const USDC = '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913';
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

/** null: the contract has no such function. */
export type Token = {
  readonly name: string | null;
  readonly version: string | null;
  readonly decimals: number | null;
  /** `stated`: of name and version. */
  readonly separator: 'stated' | Hex | null;
  /** ERC-5267. */
  readonly described: { readonly name: string; readonly version: string } | null;
  readonly takesAuthorizations: boolean;
};

export const USDC_TOKEN: Token = {
  name: 'USD Coin',
  version: '2',
  decimals: 6,
  separator: 'stated',
  described: null,
  takesAuthorizations: true,
};

export type NodeFaults = {
  /** Of the node's URL; with a path, `/ID`, of another chain. */
  chainId: number;
  token: Token;
  /** Addresses with code, lower case. */
  readonly contracts: Set<string>;
  /** The answer to a call that reverts. */
  reverts: RpcFailure;
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
  hangs: Set<string>;
};

/** What the node shows. Blocks in order of their numbers. */
type Shown = {
  /** The last block. */
  readonly head: () => number;
  readonly safe: number;
  readonly timeOf: (block: number) => number;
  readonly hashOf: (block: number) => Hex;
  readonly logs: () => readonly NodeLog[];
  /** null: there is no such transaction. */
  readonly receipt: (hash: string) => readonly NodeLog[] | null;
  readonly isUsed: (authorizer: string, nonce: string) => boolean;
  readonly balanceOf: (owner: Hex, block: number) => bigint;
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
const TOKEN = parseAbi([
  'function decimals() view returns (uint8)',
  'function name() view returns (string)',
  'function version() view returns (string)',
  'function DOMAIN_SEPARATOR() view returns (bytes32)',
  'function eip712Domain() view returns (bytes1 fields, string name, string version, uint256 chainId, address verifyingContract, bytes32 salt, uint256[] extensions)',
  'function authorizationState(address authorizer, bytes32 nonce) view returns (bool)',
  'function balanceOf(address owner) view returns (uint256)',
]);
type Filter = { address: string; topics: (string | string[] | null)[]; fromBlock: Hex; toBlock: Hex };

export const HEAD = 10_000;
const T0 = 1_767_323_045;
/** A block each two seconds. */
export const timeOf = (block: number): number => T0 + block * 2;
/** As the chain in memory names its blocks: a fork, then the number. */
export const hashOf = (block: number): Hex => `0xb10c0000${block.toString(16).padStart(56, '0')}`;
const numberOf = (hash: Hex): number => Number(BigInt.asUintN(224, BigInt(hash)));

const topic = (address: string): Hex => pad(address.toLowerCase() as Hex, { size: 32 });

/** `receipt`: the logs of a transaction, where they are others than those of its blocks. Every authorization is used. */
export async function startScriptedNode(
  logs: NodeLog[] = [],
  { head = HEAD, timeOf: timeAt = timeOf, receipt = logs }: NodeOptions = {},
) {
  const node = await startNode({
    head: () => head,
    safe: HEAD - 10,
    timeOf: timeAt,
    hashOf,
    logs: () => logs,
    receipt(hash) {
      const found = receipt.filter(({ transactionHash }) => transactionHash === hash);
      return found.length === 0 && receipt === logs ? null : found;
    },
    isUsed: () => true,
    /** By the transfers, whatever logs are left out. */
    balanceOf(owner, block) {
      let balance = 0n;
      for (const { topics, data, blockNumber } of logs) {
        if (topics[0] !== TRANSFER || blockNumber === null || blockNumber > block) continue;
        if (topics[2] === topic(owner)) balance += BigInt(data);
        if (topics[1] === topic(owner)) balance -= BigInt(data);
      }
      return balance < 0n ? 0n : balance;
    },
  });
  return { ...node, logs };
}

/** Of every owner, in units. */
const BALANCE = 12_500_000n;

/** A chain of the machine's time, of 10,000 blocks where it has no beginning. */
export function chainOfNow(
  startMs = Math.floor(Date.now() / 1000 - HEAD * BLOCK_SECONDS) * 1000,
): MemoryChain {
  return new MemoryChain({ startMs, now: () => Date.now() - startMs });
}

/** A node of the chain, on which `asset` has moved. */
export const startChainNode = (chain = chainOfNow(), asset = USDC) =>
  startNode({
    head: () => chain.height,
    safe: Number.POSITIVE_INFINITY,
    timeOf: (block) => chain.timeOf(block),
    hashOf: (block) => (chain.block(block)?.hash ?? hashOf(block)) as Hex,
    logs: () => chain.within(0, chain.height).flatMap((one) => logsOf(one, asset)),
    receipt(hash) {
      const found = chain.within(0, chain.height).find((one) => one.hash === hash);
      return found === undefined ? null : logsOf(found, asset);
    },
    isUsed: (payer, nonce) => chain.endOf({ payer: payer.toLowerCase(), nonce }) !== null,
    balanceOf: (owner, block) => BALANCE + chain.balanceOf(owner.toLowerCase(), block),
  });
export type ChainNode = Awaited<ReturnType<typeof startChainNode>>;

/** The end of the authorization, then the transfer, as USDC writes them. */
function logsOf({ hash, kind, block, authorization, moves }: Transaction, asset: string): NodeLog[] {
  const common = { address: asset, transactionHash: hash, blockNumber: block };
  const used = authorization && {
    ...common,
    topics: [kind === 'use' ? USED : CANCELLED, topic(authorization.payer), authorization.nonce],
    data: '0x',
    logIndex: 0,
  };
  const moved = moves.map(({ from, to, amount }, n) => ({
    ...common,
    topics: [TRANSFER, topic(from), topic(to)],
    data: numberToHex(amount, { size: 32 }),
    logIndex: n + 1,
  }));
  return used === null ? moved : [used, ...moved];
}

async function startNode(shown: Shown) {
  const faults: NodeFaults = {
    chainId: 8453,
    token: USDC_TOKEN,
    contracts: new Set(),
    reverts: { code: 3, message: 'execution reverted' },
    safe: shown.safe,
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
  let end = shown.head();
  const block = (number: number) =>
    number < 0 || number > end
      ? null
      : {
          number: numberToHex(number),
          hash: shown.hashOf(number),
          timestamp: numberToHex(Math.max(0, shown.timeOf(number))),
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
    return shown
      .logs()
      .filter(
        (log) =>
          !faults.forgets.has(log.transactionHash) &&
          (faults.isLoose === true || (isIn(log) && (faults.isLoose !== false || matches(log, filter)))),
      );
  }
  function called(chainId: number, to: Hex, data: Hex, at: string): Hex {
    const { name, version, decimals, separator, described, takesAuthorizations } = faults.token;
    const result = (types: string, ...values: unknown[]) => {
      if (values.includes(null)) throw new FailedCall(faults.reverts);
      return encodeAbiParameters(parseAbiParameters(types) as never, values as never);
    };
    const { functionName, args } = decodeFunctionData({ abi: TOKEN, data });
    switch (functionName) {
      case 'authorizationState':
        return result('bool', takesAuthorizations ? shown.isUsed(args[0], args[1]) : null);
      case 'balanceOf':
        return result('uint256', balanceOf(args[0], at));
      case 'name':
        return result('string', name);
      case 'version':
        return result('string', version);
      case 'decimals':
        return result('uint8', decimals);
      case 'DOMAIN_SEPARATOR': {
        const domain = { name: name ?? '', version: version ?? '', chainId, verifyingContract: to };
        return result('bytes32', separator === 'stated' ? domainSeparator({ domain }) : separator);
      }
      case 'eip712Domain': {
        const types = 'bytes1, string, string, uint256, address, bytes32, uint256[]';
        const texts = [described?.name ?? null, described?.version ?? null];
        return result(types, '0x0f', ...texts, BigInt(chainId), to, hashOf(0), []);
      }
    }
  }
  function balanceOf(owner: Hex, at: string): bigint {
    const number = at === 'latest' ? end : Number(at);
    if (number > end) throw new FailedCall({ code: -32000, message: 'header not found' });
    if (number < faults.stateFrom)
      throw new FailedCall({
        code: -32000,
        message: 'missing trie node 1f (path ) state 0x1f is not available',
      });
    return shown.balanceOf(owner, number);
  }
  const wire = (log: NodeLog) => ({
    ...log,
    blockNumber: log.blockNumber === null ? null : numberToHex(log.blockNumber),
    blockHash: shown.hashOf(log.blockNumber ?? 0),
    logIndex: numberToHex(log.logIndex),
    transactionIndex: '0x0',
  });

  const answers: Record<string, (params: never, chainId: number) => unknown> = {
    eth_chainId: (_, chainId) => numberToHex(chainId),
    eth_getCode: ([address]: [string]) => (faults.contracts.has(address.toLowerCase()) ? '0x60' : '0x'),
    eth_getBlockByNumber([at]: [string]) {
      if (at === 'latest') return block(end);
      if (at !== 'safe') return block(Number(at));
      if (faults.safe === 'unknown') throw new FailedCall({ code: -32602, message: 'invalid block tag' });
      return block(Math.min(faults.safe, end));
    },
    eth_getBlockByHash: ([hash]: [Hex]) => block(numberOf(hash)),
    eth_call: ([{ to, data }, at]: [{ to: Hex; data: Hex }, string], chainId) =>
      called(chainId, to, data, at),
    eth_getLogs: ([filter]: [Filter]) => logsOf(filter).map(wire),
    eth_getTransactionReceipt([hash]: [string]) {
      const found = shown.receipt(hash)?.map(wire);
      return found === undefined ? null : { ...found[0], status: '0x1', transactionHash: hash, logs: found };
    },
  };
  const server = await loopbackServer(async (request, response) => {
    const body = await jsonOf<RpcCall | RpcCall[]>(request);
    const { replicas } = faults;
    end = replicas[requests++ % Math.max(1, replicas.length)] ?? shown.head();
    const chainId = Number(request.url?.slice(1)) || faults.chainId;
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
      return answers[method]?.(params as never, chainId) ?? null;
    });
  });
  return {
    url: server.url,
    faults,
    /** All requests, also those that were refused. */
    asked,
    /** The methods of each batch. */
    batches: batches as readonly (readonly string[])[],
    answers,
    ranges: ranges as readonly (readonly [from: number, to: number])[],
    down: server.down,
    up: server.up,
    [Symbol.asyncDispose]: server.down,
  };
}
