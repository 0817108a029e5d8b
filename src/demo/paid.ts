// The paid demo: a chain, a facilitator and a buyer with worthless coins on this machine. The buyer pays for one call and
// presents the same payment again.
import { randomBytes } from 'node:crypto';
import { keyPayer, present, purchase, systemClock, walletAddress } from '#src/app/buyer.ts';
import { PRICE } from '#src/domain/limits.ts';
import { microUsd, showUsd } from '#src/domain/payment/price.ts';
import type { ScheduleRequest } from '#src/domain/schedule/plan.ts';
import type { Primitives } from '#src/domain/signing-keys/keys.ts';
import { OperatorError } from '#src/lib/operator-error.ts';
import { anvilPath } from './payments/anvil-process.ts';
import { startLocalChain } from './payments/chain.ts';
import { startLocalFacilitator } from './payments/facilitator.ts';
import { type Caller, fact, StoryFailed } from './story.ts';
import { sendLoopback } from './target.ts';

/** The published price of one call; the 402 and the chain are compared with it. A unit of USDC is a millionth. */
const PRICE_UNITS = microUsd(PRICE.usd) ?? 0n;

/** Atomic units. */
const BUYER_BALANCE = 1000n * PRICE_UNITS;

export type PaidWorld = {
  readonly buyerKey: `0x${string}`;
  /** Address. */
  readonly payTo: `0x${string}`;
  /** Current balances of buyer and payee in atomic units. */
  balances(): Promise<Balances>;
  /** Addresses of the chain's node and of the facilitator. */
  readonly nodeUrl: string;
  readonly facilitatorUrl: string;
  /** Configuration of the service. */
  readonly environment: Readonly<Record<string, string>>;
};

/** As Base has it: books that are compared with a chain without new blocks stand still. */
const BLOCK_SECONDS = 2;

export type Balances = { readonly buyer: bigint; readonly payee: bigint };

/** Throws if there is no local chain for this platform. `findAnvil` returns the path of its binary, or null. */
export async function startPaidWorld(
  undo: (() => Promise<void>)[],
  findAnvil: () => string | null = anvilPath,
): Promise<PaidWorld> {
  if (findAnvil() === null) {
    const here = `${process.platform} ${process.arch}`;
    throw new OperatorError(
      `the paid demo needs a local chain, and @foundry-rs/anvil is not installed for ${here}: run it in a clone of the project`,
    );
  }
  const chain = await startLocalChain(BLOCK_SECONDS);
  undo.push(() => chain.stop());
  const facilitator = await startLocalFacilitator({ rpcUrl: chain.url });
  undo.push(() => facilitator.stop());
  const buyerKey = newKey();
  const [buyer, payTo] = [walletAddress(buyerKey), walletAddress(newKey())];
  await chain.mint([buyer], BUYER_BALANCE);
  return {
    buyerKey,
    payTo,
    nodeUrl: chain.url,
    facilitatorUrl: facilitator.url,
    balances: async () => ({ buyer: await chain.balanceOf(buyer), payee: await chain.balanceOf(payTo) }),
    environment: {
      X402_ENABLED: 'true',
      X402_PAY_TO: payTo,
      X402_FACILITATOR_URL: facilitator.url,
      X402_RPC_URL: chain.url,
    },
  };
}

/**
 * Lines for a shell: `relay pay` reads RELAY_BUYER_PRIVATE_KEY, the snippets BUYER_PRIVATE_KEY. The balance is the buyer's
 * present one, in US dollars.
 */
export async function exportLines(
  paid: PaidWorld,
  relay: string,
  target: string,
): Promise<readonly string[]> {
  const { buyer } = await paid.balances();
  const values = {
    RELAY_BUYER_PRIVATE_KEY: paid.buyerKey,
    BUYER_PRIVATE_KEY: paid.buyerKey,
    RELAY: relay,
    TARGET: target,
    PAY_TO: paid.payTo,
    BALANCE_USD: showUsd(buyer).slice(1),
  };
  return Object.entries(values).map(([name, value]) => `export ${name}=${value}`);
}

/** What `relay pay --schedule` takes: a run a minute, the first one in three minutes. */
export const exampleSchedule = (url: string, nowMs: number): ScheduleRequest => ({
  webhook: { url, method: 'POST', body: { event: 'report.due' } },
  schedule: { type: 'interval', everyMinutes: 1, startAt: new Date(nowMs + 180_000).toISOString() },
});

const newKey = (): `0x${string}` => `0x${randomBytes(32).toString('hex')}`;

/** Pays for the call once. */
export function paidCaller(relay: string, primitives: Primitives, paid: PaidWorld): Caller {
  const deps = {
    send: sendLoopback,
    clock: systemClock(),
    primitives,
    waiting: () => undefined,
    ledger: null,
  };
  const limits = {
    maxPriceMicroUsd: PRICE_UNITS,
    network: PRICE.network,
    payTo: paid.payTo,
    allowHosts: null,
  };
  const balances: Balances[] = [];
  let purchased: Awaited<ReturnType<typeof purchase>>;
  return {
    async execute(request) {
      balances.push(await paid.balances());
      const payer = keyPayer(paid.buyerKey);
      purchased = await purchase(deps, { relay, request, limits, payer, keys: null, repeatable: false });
      balances.push(await paid.balances());
      if (purchased.evidence !== null) return purchased.evidence.execution;
      const { outcome, error } = purchased;
      throw new StoryFailed(`the purchase ended as ${outcome}: ${error?.message}`);
    },
    async repeat(request) {
      const url = `${relay}/api/execute/webhook`;
      const { payment } = purchased;
      const repeated = payment && (await present(deps, url, JSON.stringify(request), payment.header));
      balances.push(await paid.balances());
      if (repeated?.kind === 'executed') return JSON.parse(repeated.answer.body);
      throw new StoryFailed('the same payment, presented again, returned no result');
    },
    facts() {
      const [before, after, end] = balances;
      const charged = (from?: Balances, to?: Balances) =>
        from && to && [from.buyer - to.buyer, to.payee - from.payee].join();
      return [
        ...(purchased.evidence?.facts.filter(({ name }) => name !== 'receipt_verified_offline') ?? []),
        fact(
          'charged_once',
          charged(before, after) === `${PRICE_UNITS},${PRICE_UNITS}`,
          `exactly ${PRICE_UNITS} units were transferred from the buyer to the payee on the chain`,
        ),
        fact(
          'replay_not_charged',
          charged(after, end) === '0,0',
          'and nothing was charged when the same payment was presented again',
        ),
      ];
    },
  };
}
