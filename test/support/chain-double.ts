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
import { jsonOf, loopbackServer } from './loopback-server.ts';
import { answerCalls, FailedCall, type RpcFailure } from './scripted-node.ts';

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

/** A settled authorization. Addresses as in the payment. */
export type Moved = {
  readonly transaction: string;
  readonly asset: string;
  readonly from: string;
  readonly to: string;
  readonly value: string;
};

export type ChainDouble = AsyncDisposable & {
  /** With a path, `/ID`, of another chain. Does not keep the process alive. */
  readonly url: string;
  /** Methods of all calls so far. */
  readonly calls: readonly string[];
  chainId: number;
  token: Token;
  /** Addresses with code, lower case. */
  readonly contracts: Set<string>;
  /** The answer to a call that reverts. */
  reverts: RpcFailure;
  /** Calls of these methods are not answered. */
  readonly hangs: Set<string>;
  /** Closes the port and every connection. */
  down(): Promise<void>;
  /** Opens the same port again. */
  up(): Promise<void>;
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
const USED = toEventSelector('AuthorizationUsed(address,bytes32)');
const TRANSFER = toEventSelector('Transfer(address,address,uint256)');
const HEAD = numberToHex(1000);
const HASH = `0x${'b'.repeat(64)}` as const;
type Asked = { readonly id: number; readonly method: string; readonly params?: never[] };

/** Of every owner, in units. */
const BALANCE = 12_500_000n;
/** The contract reverts. */
const REVERTED = Symbol('reverted');

/** `moves`: by nonce. */
export async function startChainDouble(moves: ReadonlyMap<string, Moved> = new Map()): Promise<ChainDouble> {
  const calls: string[] = [];
  const block = () => ({
    number: HEAD,
    hash: HASH,
    timestamp: numberToHex(Math.floor(Date.now() / 1000)),
    transactions: [],
  });
  const answersOf = (chainId: number): Readonly<Record<string, (...params: never[]) => unknown>> => ({
    eth_chainId: () => numberToHex(chainId),
    eth_getBlockByNumber: block,
    eth_getBlockByHash: block,
    eth_getCode: (address: string) => (double.contracts.has(address.toLowerCase()) ? '0x60' : '0x'),
    eth_call: ({ to, data }: { to: Hex; data: Hex }) =>
      called({ chainId, token: double.token, moves }, to, data),
    eth_getLogs: ({ topics }: { topics: readonly string[] }) =>
      [...moves].filter(([nonce]) => nonce === topics[2]).map(([nonce, moved]) => logsOf(nonce, moved)[0]),
    eth_getTransactionReceipt: (hash: string) => {
      const [found] = [...moves].filter(([, { transaction }]) => transaction === hash);
      if (found === undefined) return null;
      const place = { blockNumber: HEAD, blockHash: HASH };
      return { status: '0x1', transactionHash: hash, ...place, logs: logsOf(...found) };
    },
  });
  const server = await loopbackServer(async (request, response) => {
    const chainId = Number(request.url?.slice(1)) || double.chainId;
    answerCalls(response, await jsonOf<Asked | Asked[]>(request), ({ method, params = [] }) => {
      calls.push(method);
      if (double.hangs.has(method)) return undefined;
      const result = answersOf(chainId)[method]?.(...(params as never[])) ?? null;
      if (result === REVERTED) throw new FailedCall(double.reverts);
      return result;
    });
  });
  const double: ChainDouble = {
    url: server.url,
    calls,
    chainId: 8453,
    token: USDC_TOKEN,
    contracts: new Set(),
    reverts: { code: 3, message: 'execution reverted' },
    hangs: new Set(),
    down: server.down,
    up: server.up,
    [Symbol.asyncDispose]: server.down,
  };
  return double;
}

function called(
  {
    chainId,
    token,
    moves,
  }: { readonly chainId: number; readonly token: Token; readonly moves: ReadonlyMap<string, Moved> },
  to: Hex,
  data: Hex,
): Hex | typeof REVERTED {
  const { name, version, decimals, separator, described, takesAuthorizations } = token;
  const result = (types: string, ...values: unknown[]) =>
    values.includes(null)
      ? REVERTED
      : encodeAbiParameters(parseAbiParameters(types) as never, values as never);
  const { functionName, args } = decodeFunctionData({ abi: TOKEN, data });
  switch (functionName) {
    case 'authorizationState':
      return result('bool', takesAuthorizations ? moves.has(args[1]) : null);
    case 'balanceOf':
      return result('uint256', BALANCE);
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
      if (described === null) return REVERTED;
      const types = 'bytes1, string, string, uint256, address, bytes32, uint256[]';
      return result(types, '0x0f', described.name, described.version, BigInt(chainId), to, HASH, []);
    }
  }
}

/** The use of the authorization, then the transfer, as USDC writes them. */
function logsOf(nonce: string, { transaction, asset, from, to, value }: Moved): readonly [object, object] {
  const topic = (text: string) => pad(text.toLowerCase() as Hex, { size: 32 });
  const common = { address: asset, transactionHash: transaction, blockNumber: HEAD, blockHash: HASH };
  return [
    { ...common, topics: [USED, topic(from), nonce], data: '0x', logIndex: '0x0' },
    {
      ...common,
      topics: [TRANSFER, topic(from), topic(to)],
      data: numberToHex(BigInt(value), { size: 32 }),
      logIndex: '0x1',
    },
  ];
}
