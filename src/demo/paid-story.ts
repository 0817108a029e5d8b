// The paid demo's story: a buyer with a policy of its own buys one call, and presents the same payment once more.

import { type Finding, present, type Terms } from '#src/app/buyer.ts';
import { FoundWrong } from '#src/cli/exit.ts';
import { purchase } from '#src/cli/pay-purchase.ts';
import type { PaymentFacts } from '#src/domain/event-fields.ts';
import { PRICE } from '#src/domain/limits.ts';
import { microUsd } from '#src/domain/payment/money.ts';
import type { Clock } from '#src/ports/clock.ts';
import {
  BODY,
  deliveryFacts,
  type Executed,
  type Fact,
  fact,
  HEADERS,
  linkFacts,
  loggedFact,
  replayFacts,
  webhookSignatureFact,
} from './facts.ts';
import { sendLoopback } from './loopback-client.ts';
import type { PaidWorld } from './paid.ts';
import { receivedBy, type Story, type StoryDeps, saveEvidence, storyOf, verifyOffline } from './story.ts';

/** Atomic units, decimal: before the purchase, after it, and after the same payment came again. */
export type Balances = { readonly before: string; readonly after: string; readonly afterReplay: string };

export type PaidStory = Story & {
  readonly terms: Terms;
  readonly policy: readonly Finding[];
  readonly balances: { readonly buyer: Balances; readonly payee: Balances };
  /** As the receipt's signature covers it. */
  readonly payment: PaymentFacts | null;
};

export type PaidStoryDeps = StoryDeps & { readonly paid: PaidWorld; readonly clock: Clock };

/** What one call costs, as the documents say: the bill and the chain are compared with it. A unit of USDC is a millionth. */
const PRICE_UNITS = microUsd(PRICE.usd) ?? 0n;

/** Throws `FoundWrong` where the story cannot go on. */
export async function runPaidStory(deps: PaidStoryDeps): Promise<PaidStory> {
  const { baseUrl, target, folder, primitives, paid, clock } = deps;
  const request = { url: target.url, method: 'POST', headers: HEADERS, body: BODY };
  const balances = async () => [await paid.balanceOf(paid.buyer), await paid.balanceOf(paid.payTo)] as const;
  const before = await balances();
  const buying = { send: sendLoopback, clock, primitives, waiting: () => undefined };
  const limits = { maxPriceMicroUsd: PRICE_UNITS, network: PRICE.network, payTo: paid.payTo };
  const order = { relay: baseUrl, request, limits, privateKey: paid.buyerKey, save: null };
  const bought = await purchase(buying, order);
  const { evidence, terms, payment, policy } = bought;
  if (evidence === null || terms === null || payment === null) throw new FoundWrong(whyNot(bought));
  const after = await balances();
  const first = evidence.execution;
  const { received, requests } = receivedBy(target);
  const files = await saveEvidence(folder, baseUrl, first);
  const { verification, keys, jws } = await verifyOffline(files, primitives);

  const repeated = await present(buying, `${baseUrl}/api/execute/webhook`, JSON.stringify(request), payment);
  if (repeated.kind !== 'executed') throw new FoundWrong('the same payment again brought no result');
  const again = repeated.execution as unknown as Executed;
  const afterReplay = await balances();
  const facts: Fact[] = [
    fact(
      'offer_allowed',
      policy.every(({ ok }) => ok),
      'what the 402 asks for is what the buyer allows',
    ),
    chargedOnce(before, after),
    ...deliveryFacts(first, received, requests),
    await webhookSignatureFact(received, keys, primitives),
    fact(
      'saved_receipt_verified',
      verification.ok && jws === first.receipt.jws,
      'the saved receipt is the one that came, and verifies by the saved keys alone',
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
      buyer: told(before[0], after[0], afterReplay[0]),
      payee: told(before[1], after[1], afterReplay[1]),
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
    `exactly ${PRICE_UNITS} units went from the buyer to the payee, on the chain`,
  );
}

const told = (before: bigint, after: bigint, afterReplay: bigint): Balances => ({
  before: String(before),
  after: String(after),
  afterReplay: String(afterReplay),
});

function whyNot({ outcome, problem, policy }: Awaited<ReturnType<typeof purchase>>): string {
  const refused = policy.filter(({ ok }) => !ok).map(({ name, offered }) => `${name}: ${offered}`);
  return `the purchase ended as ${outcome}: ${problem?.message ?? refused.join(', ')}`;
}
