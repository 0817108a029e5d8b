// The paid demo's world: a chain, a facilitator and a buyer with coins, all on this machine and all worthless.
import { randomBytes } from 'node:crypto';
import { CannotRun } from '#src/cli/exit.ts';

/** Atomic units: enough for three calls. */
const PURSE = 9000n;

export type PaidWorld = {
  readonly buyerKey: `0x${string}`;
  /** Addresses. */
  readonly buyer: `0x${string}`;
  readonly payTo: `0x${string}`;
  /** Atomic units, as the chain has them now. */
  balanceOf(owner: `0x${string}`): Promise<bigint>;
  /** What the service is configured with. */
  readonly environment: Readonly<Record<string, string>>;
};

/** Throws `CannotRun` where this platform has no chain to run. `findAnvil`: the path of its binary, or null. */
export async function startPaidWorld(
  undo: (() => Promise<void>)[],
  findAnvil?: () => string | null,
): Promise<PaidWorld> {
  const { anvilPath } = await import('./payments/anvil-process.ts');
  const { startLocalChain } = await import('./payments/chain.ts');
  const { startLocalFacilitator } = await import('./payments/facilitator.ts');
  const { addressOf } = await import('#src/app/buyer.ts');
  if ((findAnvil ?? anvilPath)() === null) {
    const here = `${process.platform} ${process.arch}`;
    throw new CannotRun(
      `the paid demo needs a local chain, and @foundry-rs/anvil is not installed for ${here}`,
    );
  }
  const chain = await startLocalChain();
  undo.push(() => chain.stop());
  const facilitator = await startLocalFacilitator({ rpcUrl: chain.url });
  undo.push(() => facilitator.stop());
  const buyerKey = newKey();
  const [buyer, payTo] = [addressOf(buyerKey), addressOf(newKey())];
  await chain.mint([buyer], PURSE);
  return {
    buyerKey,
    buyer,
    payTo,
    balanceOf: (owner) => chain.balanceOf(owner),
    environment: {
      X402_ENABLED: 'true',
      X402_PAY_TO: payTo,
      X402_FACILITATOR_URL: facilitator.url,
      X402_RPC_URL: chain.url,
    },
  };
}

const newKey = (): `0x${string}` => `0x${randomBytes(32).toString('hex')}`;
