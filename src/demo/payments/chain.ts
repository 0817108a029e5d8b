// The local chain: it has Base's chain id and a token at USDC's address, of which callers can mint coins.
import {
  type Address,
  createTestClient,
  defineChain,
  encodeFunctionData,
  type Hex,
  http,
  parseAbi,
  publicActions,
  type TransactionReceipt,
  TransactionReceiptNotFoundError,
  walletActions,
} from 'viem';
import { mnemonicToAccount } from 'viem/accounts';
import { sleep } from '#src/lib/time.ts';
import { startAnvil } from './anvil-process.ts';
import contracts from './contracts.json' with { type: 'json' };

/** Base's id: clients and facilitators accept only chains that they know. */
export const CHAIN_ID = 8453;
/** USDC on Base (https://developers.circle.com/stablecoins/usdc-contract-addresses). */
export const TOKEN: Address = '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913';
/** Address of Multicall3 on every chain; facilitators call it to find out why a transfer would fail. */
const MULTICALL: Address = '0xcA11bde05977b3631167028862bE2a173976CA11';

const tokenAbi = parseAbi([
  'function mint(address to, uint256 value)',
  'function balanceOf(address owner) view returns (uint256)',
]);
const multicallAbi = parseAbi([
  'struct Call { address target; bytes callData; }',
  'struct Result { bool success; bytes returnData; }',
  'function tryAggregate(bool requireSuccess, Call[] calls) payable returns (Result[] results)',
]);

/** An account of anvil's public default mnemonic; each has 10,000 worthless ether. */
export const devAccount = (index: number) =>
  mnemonicToAccount('test test test test test test test test test test test junk', { addressIndex: index });
/** Sends the transactions of this module; the facilitator has its own account. */
const OPERATOR = devAccount(1);

/** Amounts are in atomic units (6 decimals). */
export type LocalChain = {
  /** JSON-RPC, as X402_RPC_URL takes it. */
  readonly url: string;
  balanceOf(owner: Address): Promise<bigint>;
  /** Mints `amount` for each owner, in one transaction. */
  mint(owners: readonly Address[], amount: bigint): Promise<void>;
  /** Stops the chain; its state is lost. */
  stop(): Promise<void>;
};

/** Starts a new chain; `blockSeconds` as for `startAnvil`. Rejects if anvil is missing; check with `anvilPath()` first. */
export async function startLocalChain(blockSeconds: number | null = null): Promise<LocalChain> {
  return localChainOn(await startAnvil(CHAIN_ID, blockSeconds), 'anvil');
}

/** The chain of a node that was started empty, with `CHAIN_ID` and anvil's accounts; `mode`: whose methods it has. */
export async function localChainOn(
  node: Pick<LocalChain, 'url' | 'stop'>,
  mode: 'anvil' | 'hardhat' | 'ganache',
): Promise<LocalChain> {
  const client = chainClient(node.url, mode);
  try {
    await placeContracts(client);
  } catch (cause) {
    await node.stop();
    throw new Error('the local chain does not answer (does a proxy of the environment cover 127.0.0.1?)', {
      cause,
    });
  }
  const withNonce = inNonceOrder(() =>
    client.getTransactionCount({ address: OPERATOR.address, blockTag: 'pending' }),
  );
  const token = { address: TOKEN, abi: tokenAbi } as const;
  return {
    url: node.url,
    balanceOf: (owner) => client.readContract({ ...token, functionName: 'balanceOf', args: [owner] }),
    async mint(owners, amount) {
      const calls = owners.map((to) => ({
        target: TOKEN,
        callData: encodeFunctionData({ abi: tokenAbi, functionName: 'mint', args: [to, amount] }),
      }));
      const aggregate = { address: MULTICALL, abi: multicallAbi, functionName: 'tryAggregate' } as const;
      const hash = await withNonce((nonce) =>
        client.writeContract({ ...aggregate, args: [true, calls], nonce }),
      );
      const { status } = await mined(client, hash);
      if (status !== 'success') throw new Error('the local chain refused the transaction');
    },
    stop: node.stop,
  };
}

async function placeContracts(client: ReturnType<typeof chainClient>): Promise<void> {
  await client.setCode({ address: TOKEN, bytecode: contracts.LocalDollar as Hex });
  await client.setCode({ address: MULTICALL, bytecode: contracts.LocalMulticall as Hex });
}

/** The chain at `url` as viem describes it. */
export const viemChain = (url: string) =>
  defineChain({
    id: CHAIN_ID,
    name: 'local Base',
    nativeCurrency: { name: 'Ether', symbol: 'ETH', decimals: 18 },
    rpcUrls: { default: { http: [url] } },
  });

const chainClient = (url: string, mode: 'anvil' | 'hardhat' | 'ganache') =>
  createTestClient({
    mode,
    account: OPERATOR,
    chain: viemChain(url),
    transport: http(url),
  })
    .extend(publicActions)
    .extend(walletActions);

// ── receipts and nonces of transactions ─────────────────────────────────────────────────────────────

const POLL_MS = 50;
const LIMIT_MS = 180_000;

/**
 * Returns the receipt of a transaction as soon as it is in a block. Rejects if the chain does not answer, and after `limitMs`.
 * viem's waitForTransactionReceipt polls again only after a new block and misses one that arrives while it polls; this
 * chain makes a block only for a transaction, so the last sender would wait forever.
 */
export async function mined(
  chain: { getTransactionReceipt(of: { readonly hash: Hex }): Promise<TransactionReceipt> },
  hash: Hex,
  limitMs = LIMIT_MS,
): Promise<TransactionReceipt> {
  const begun = performance.now();
  for (;;) {
    try {
      return await chain.getTransactionReceipt({ hash });
    } catch (cause) {
      if (!(cause instanceof TransactionReceiptNotFoundError)) throw cause;
      if (performance.now() - begun > limitMs) throw cause;
    }
    await sleep(POLL_MS);
  }
}

/**
 * Sends one transaction after the other, each in the chain's pool before the next one gets its nonce. viem's nonce
 * manager repeats or skips nonces when transactions overlap on a busy machine.
 */
export type SendInOrder = <T>(send: (nonce: number) => Promise<T>) => Promise<T>;

/** `count`: the account's next nonce, pending transactions included; it is read again after a failed send. */
export function inNonceOrder(count: () => Promise<number>): SendInOrder {
  let last: Promise<unknown> = Promise.resolve();
  let known: number | null = null;
  return (send) => {
    const sending = last.then(async () => {
      const nonce = known ?? (await count());
      known = null;
      const sent = await send(nonce);
      known = nonce + 1;
      return sent;
    });
    last = sending.catch(() => undefined);
    return sending;
  };
}
