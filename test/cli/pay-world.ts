// For tests of `relay pay`: a service with payment, a facilitator double, and a proxy between buyer and service that can
// change answers.
import { after, before } from 'node:test';
import { type FacilitatorDouble, facilitatorDouble } from '#test/support/chain/facilitator-double.ts';
import { type ChainNode, startChainNode } from '#test/support/chain/scripted-node.ts';
import { runCli } from '#test/support/process/cli.ts';
import type { CliResult } from '#test/support/process/cli-process.ts';
import { type RelayFront, startRelayFront } from '#test/support/process/relay-front.ts';
import { makeWorld, type World } from '#test/support/world/service-world.ts';

export const PAY_TO = '0x1111111111111111111111111111111111111111';

/** One purchase by a new wallet. */
export type Scene = { readonly path: string; readonly key: string; readonly args: readonly string[] };

/** Called once at the top of a test file; runs from `before` to `after`. */
export function payWorld() {
  let world: World;
  let facilitator: FacilitatorDouble;
  let chain: ChainNode;
  let front: RelayFront;
  let payers = 0;
  before(async () => {
    [world, facilitator, front] = await Promise.all([
      makeWorld({ handler: ({ path }) => ({ status: path === '/fails' ? 500 : 200 }) }),
      facilitatorDouble(),
      startRelayFront(),
    ]);
    chain = await startChainNode(facilitator.chain);
    const service = await world.start({
      PUBLIC_BASE_URL: front.url,
      X402_ENABLED: 'true',
      X402_PAY_TO: PAY_TO,
      X402_FACILITATOR_URL: facilitator.url,
      X402_RPC_URL: chain.url,
      X402_CONFIRM_SECONDS: '0',
    });
    front.behind(service.url);
  });
  after(async () => {
    await world?.end();
    await facilitator?.close();
    await chain?.down();
    await front?.down();
  });
  const newKey = (): `0x${string}` => `0x${'1f'.repeat(31)}${(++payers).toString(16).padStart(2, '0')}`;
  return {
    get world() {
      return world;
    },
    get facilitator() {
      return facilitator;
    },
    get chain() {
      return chain;
    },
    get front() {
      return front;
    },
    newKey,
    scene(path: string, ...more: readonly string[]): Scene {
      const args = [
        'pay',
        world.target.url(path),
        '--relay',
        front.url,
        '--pay-to',
        PAY_TO,
        '--json',
        ...more,
      ];
      return { path, key: newKey(), args };
    },
    run: ({ args, key }: Scene) => runCli(args, { env: { RELAY_BUYER_PRIVATE_KEY: key } }),
    /** Counts charges, payments and calls since this call. */
    books() {
      const [settled, paid] = [facilitator.ledger.size, front.payments.length];
      return {
        charges: () => facilitator.ledger.size - settled,
        payments: () => front.payments.slice(paid),
        calls: ({ path }: Scene) => world.target.requests.filter((request) => request.path === path),
      };
    },
  };
}

export const factsOf = ({ stdout }: CliResult): Record<string, boolean> =>
  Object.fromEntries(
    JSON.parse(stdout).facts.map(({ name, ok }: { name: string; ok: boolean }) => [name, ok]),
  );

export const ALL_GOOD = {
  receipt_verified_offline: true,
  receipt_names_payment: true,
  receipt_binds_request: true,
  answer_matches_receipt: true,
};

export const isPaid = (headers: Readonly<Record<string, string>>) =>
  headers['payment-signature'] !== undefined;
