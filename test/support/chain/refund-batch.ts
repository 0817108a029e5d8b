// Transfers as an operator sends them for refunds: several in one transaction, from a wallet that is a contract.
import {
  createTestClient,
  encodeFunctionData,
  type Hex,
  http,
  parseAbi,
  publicActions,
  walletActions,
} from 'viem';
import { devAccount, type LocalChain, mined, TOKEN, viemChain } from '#src/demo/payments/chain.ts';
import contracts from '#src/demo/payments/contracts.json' with { type: 'json' };

/** In atomic units. */
export type BatchTransfer = { readonly to: Hex; readonly amount: bigint };

const batchAbi = parseAbi([
  'struct Call { address target; bytes callData; }',
  'struct Result { bool success; bytes returnData; }',
  'function tryAggregate(bool requireSuccess, Call[] calls) payable returns (Result[] results)',
]);
const tokenAbi = parseAbi([
  'function transfer(address to, uint256 value) returns (bool)',
  'function mint(address to, uint256 value)',
]);

/** At most one at a time for a chain. `from` becomes a contract. Returns the transaction, also of one that fails. */
export async function sendBatch(
  chain: Pick<LocalChain, 'url'>,
  from: Hex,
  transfers: readonly BatchTransfer[],
  token: Hex = TOKEN,
): Promise<Hex> {
  const client = clientOf(chain);
  await client.setCode({ address: from, bytecode: contracts.LocalMulticall as Hex });
  const calls = transfers.map(({ to, amount }) => ({
    target: token,
    callData: encodeFunctionData({ abi: tokenAbi, functionName: 'transfer', args: [to, amount] }),
  }));
  const batch = { address: from, abi: batchAbi, functionName: 'tryAggregate', args: [true, calls] } as const;
  // Without an estimate, which refuses a transaction that fails.
  const hash = await client.writeContract({ ...batch, gas: 2_000_000n });
  await mined(client, hash);
  return hash;
}

/** Another dollar token on the chain, of which `owner` has the amount. */
export async function placeToken(chain: Pick<LocalChain, 'url'>, owner: Hex, amount: bigint): Promise<Hex> {
  const token: Hex = '0x00000000000000000000000000000000000d0114';
  await clientOf(chain).setCode({ address: token, bytecode: contracts.LocalDollar as Hex });
  await mintFor(chain, owner, amount, token);
  return token;
}

/** New tokens, by the account of this module, whose nonce is read each time. Returns the transaction. */
export async function mintFor(
  chain: Pick<LocalChain, 'url'>,
  to: Hex,
  amount: bigint,
  token: Hex = TOKEN,
): Promise<Hex> {
  const client = clientOf(chain);
  const mint = { address: token, abi: tokenAbi, functionName: 'mint', args: [to, amount] } as const;
  const hash = await client.writeContract(mint);
  await mined(client, hash);
  return hash;
}

const clientOf = ({ url }: Pick<LocalChain, 'url'>) =>
  createTestClient({ mode: 'anvil', account: devAccount(3), chain: viemChain(url), transport: http(url) })
    .extend(publicActions)
    .extend(walletActions);
