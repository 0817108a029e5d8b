// The local chain of the demo, with what only tests do to it: its clock, its blocks, authorizations and contract wallets.
import { type Address, createTestClient, type Hex, http, parseAbi, publicActions, walletActions } from 'viem';
import {
  devAccount,
  inNonceOrder,
  type LocalChain,
  mined,
  startLocalChain,
  TOKEN,
  viemChain,
} from '#src/demo/payments/chain.ts';
import contracts from '#src/demo/payments/contracts.json' with { type: 'json' };

const tokenAbi = parseAbi([
  'function authorizationState(address authorizer, bytes32 nonce) view returns (bool)',
  'function cancelAuthorization(address authorizer, bytes32 nonce, bytes signature)',
]);
const walletAbi = parseAbi(['function own(address first)']);

/** Times in Unix seconds of the chain's clock. */
export type ControlledChain = LocalChain & {
  /** Whether the authorization was used or cancelled. */
  isSpent(authorizer: Address, nonce: Hex): Promise<boolean>;
  /** Cancels by the authorizer's signature over CancelAuthorization; rejects if the token refuses it. */
  cancel(authorizer: Address, nonce: Hex, signature: Hex): Promise<void>;
  /** Places a contract wallet (ERC-1271) of this owner at an address. */
  placeWallet(at: Address, owner: Address): Promise<void>;
  time(): Promise<number>;
  /** Moves the chain's clock forward, and mines a block. */
  advance(seconds: number): Promise<void>;
  /** true (the default): every transaction is mined at once; false: only `mine` mines a block. */
  automine(on: boolean): Promise<void>;
  mine(): Promise<void>;
};

/** An account of its own: the chain's sends the mints. */
const account = devAccount(4);

export async function startControlledChain(): Promise<ControlledChain> {
  const chain = await startLocalChain();
  const transport = http(chain.url);
  const client = createTestClient({ mode: 'anvil', account, chain: viemChain(chain.url), transport })
    .extend(publicActions)
    .extend(walletActions);
  const withNonce = inNonceOrder(() =>
    client.getTransactionCount({ address: account.address, blockTag: 'pending' }),
  );
  const done = async (send: (nonce: number) => Promise<Hex>) => {
    const { status } = await mined(client, await withNonce(send));
    if (status !== 'success') throw new Error('the local chain refused the transaction');
  };
  const token = { address: TOKEN, abi: tokenAbi } as const;
  return {
    ...chain,
    isSpent: (...args) => client.readContract({ ...token, functionName: 'authorizationState', args }),
    cancel: (...args) =>
      done((nonce) => client.writeContract({ ...token, functionName: 'cancelAuthorization', args, nonce })),
    async placeWallet(at, owner) {
      await client.setCode({ address: at, bytecode: contracts.LocalWallet as Hex });
      const own = { address: at, abi: walletAbi, functionName: 'own', args: [owner] } as const;
      await done((nonce) => client.writeContract({ ...own, nonce }));
    },
    time: async () => Number((await client.getBlock()).timestamp),
    async advance(seconds) {
      await client.increaseTime({ seconds });
      await client.mine({ blocks: 1 });
    },
    automine: (on) => client.setAutomine(on),
    mine: () => client.mine({ blocks: 1 }),
  };
}
