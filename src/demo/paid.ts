// The paid demo: a chain, a facilitator and a buyer with worthless coins on this machine. The buyer pays for one call and
// presents the same payment again.
import { randomBytes } from 'node:crypto';
import { addressOf, type Fact, type Finding, present, purchase, type Terms } from '#src/app/buyer.ts';
import type { PaymentFacts } from '#src/domain/event-fields.ts';
import { PRICE } from '#src/domain/limits.ts';
import { microUsd } from '#src/domain/payment/price.ts';
import type { Clock } from '#src/ports/clock.ts';
import {
  BODY,
  deliveryFacts,
  type Executed,
  fact,
  HEADERS,
  linkFacts,
  loggedFact,
  replayFacts,
  StoryFailed,
  webhookSignatureFact,
} from './facts.ts';
import { anvilPath } from './payments/anvil-process.ts';
import { startLocalChain } from './payments/chain.ts';
import { startLocalFacilitator } from './payments/facilitator.ts';
import { receivedBy, type Story, type StoryDeps, saveEvidence, storyOf, verifyOffline } from './story.ts';
import { sendLoopback } from './target.ts';

/** Atomic units: enough for three calls. */
const BUYER_BALANCE = 9000n;

export type PaidWorld = {
  readonly buyerKey: `0x${string}`;
  /** Addresses. */
  readonly buyer: `0x${string}`;
  readonly payTo: `0x${string}`;
  /** Current balance in atomic units. */
  balanceOf(owner: `0x${string}`): Promise<bigint>;
  /** Configuration of the service. */
  readonly environment: Readonly<Record<string, string>>;
};

/** Throws if there is no local chain for this platform. `findAnvil` returns the path of its binary, or null. */
export async function startPaidWorld(
  undo: (() => Promise<void>)[],
  findAnvil: () => string | null = anvilPath,
): Promise<PaidWorld> {
  if (findAnvil() === null) {
    const here = `${process.platform} ${process.arch}`;
    throw new Error(`the paid demo needs a local chain, and @foundry-rs/anvil is not installed for ${here}`);
  }
  const chain = await startLocalChain();
  undo.push(() => chain.stop());
  const facilitator = await startLocalFacilitator({ rpcUrl: chain.url });
  undo.push(() => facilitator.stop());
  const buyerKey = newKey();
  const [buyer, payTo] = [addressOf(buyerKey), addressOf(newKey())];
  await chain.mint([buyer], BUYER_BALANCE);
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

/** Atomic units, decimal: before the purchase, after it, and after the same payment was presented again. */
export type Balances = { readonly before: string; readonly after: string; readonly afterReplay: string };

export type PaidStory = Story & {
  readonly terms: Terms;
  readonly policy: readonly Finding[];
  readonly balances: { readonly buyer: Balances; readonly payee: Balances };
  /** The payment in the signed receipt. */
  readonly payment: PaymentFacts | null;
};

export type PaidStoryDeps = StoryDeps & { readonly paid: PaidWorld; readonly clock: Clock };

/** The published price of one call; the 402 and the chain are compared with it. A unit of USDC is a millionth. */
const PRICE_UNITS = microUsd(PRICE.usd) ?? 0n;

/** Throws `StoryFailed` if the demo cannot continue. */
export async function runPaidStory(deps: PaidStoryDeps): Promise<PaidStory> {
  const { baseUrl, target, folder, primitives, paid, clock } = deps;
  const request = { url: target.url, method: 'POST', headers: HEADERS, body: BODY };
  const balances = async () => [await paid.balanceOf(paid.buyer), await paid.balanceOf(paid.payTo)] as const;
  const before = await balances();
  const buying = { send: sendLoopback, clock, primitives, waiting: () => undefined };
  const limits = { maxPriceMicroUsd: PRICE_UNITS, network: PRICE.network, payTo: paid.payTo };
  const order = { relay: baseUrl, request, limits, privateKey: paid.buyerKey, save: null };
  const purchased = await purchase(buying, order);
  const { evidence, terms, payment, policy } = purchased;
  if (evidence === null || terms === null || payment === null)
    throw new StoryFailed(purchaseProblem(purchased));
  const after = await balances();
  const first = evidence.execution;
  const { received, requests } = receivedBy(target);
  const files = await saveEvidence(folder, baseUrl, first);
  const { verification, keys, jws } = await verifyOffline(files, primitives);

  const repeated = await present(buying, `${baseUrl}/api/execute/webhook`, JSON.stringify(request), payment);
  if (repeated.kind !== 'executed')
    throw new StoryFailed('the same payment, presented again, returned no result');
  const again = JSON.parse(repeated.answer.body) as Executed;
  const afterReplay = await balances();
  const facts: Fact[] = [
    fact(
      'offer_allowed',
      policy.every(({ ok }) => ok),
      'the 402 is within the limits of the buyer',
    ),
    chargedOnce(before, after),
    ...deliveryFacts(first, received, requests),
    await webhookSignatureFact(received, keys, primitives),
    fact(
      'saved_receipt_verified',
      verification.ok && jws === first.receipt.jws,
      'the saved receipt is the one that was returned, and verifies with the saved keys only',
    ),
    ...evidence.facts,
    loggedFact(verification),
    ...replayFacts(first, again, target.received.length - requests),
    fact('replay_not_charged', afterReplay.join() === after.join(), 'and nothing was charged a second time'),
    ...(await linkFacts(first)),
  ];
  return {
    ...storyOf(deps, { first, again, received, verification, facts, files }),
    terms,
    policy,
    balances: {
      buyer: balancesOf(before[0], after[0], afterReplay[0]),
      payee: balancesOf(before[1], after[1], afterReplay[1]),
    },
    payment: evidence.receiptPayment,
  };
}

type Pair = readonly [buyer: bigint, payee: bigint];

function chargedOnce([buyer, payee]: Pair, [buyerAfter, payeeAfter]: Pair): Fact {
  const ok = buyer - buyerAfter === PRICE_UNITS && payeeAfter - payee === PRICE_UNITS;
  return fact(
    'charged_once',
    ok,
    `exactly ${PRICE_UNITS} units were transferred from the buyer to the payee on the chain`,
  );
}

const balancesOf = (before: bigint, after: bigint, afterReplay: bigint): Balances => ({
  before: String(before),
  after: String(after),
  afterReplay: String(afterReplay),
});

function purchaseProblem({ outcome, problem, policy }: Awaited<ReturnType<typeof purchase>>): string {
  const refused = policy.filter(({ ok }) => !ok).map(({ name, offered }) => `${name}: ${offered}`);
  return `the purchase ended as ${outcome}: ${problem?.message ?? refused.join(', ')}`;
}
