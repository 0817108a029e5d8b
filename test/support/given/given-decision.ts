// Decisions as a test asks for them, and the guided calls that they approve, through the real use cases.
import assert from 'node:assert/strict';
import type { DecisionFacts } from '#src/domain/decision/recommend.ts';
import type { BuyerPolicyRequest } from '#src/domain/decision/requests.ts';
import type { WebhookRequest } from '#src/domain/job/webhook-request.ts';
import { isRefused } from '#src/domain/refusal.ts';
import { type DecideDeps, decideWebhook } from '#src/usecases/decisions/decide-webhook.ts';
import {
  executeGuidedWebhook,
  type Guided,
  type GuidedInput,
} from '#src/usecases/execution/execute-guided-webhook.ts';
import { presentedPayment } from '#test/support/chain/fakes-payments.ts';
import type { World } from '#test/support/world/fakes-world.ts';
import { webhook } from './given-call.ts';
import { decisionRecorded } from './given-events.ts';

/** Facts and a policy that nothing speaks against. */
export const goodFacts = (changes: Partial<DecisionFacts> = {}): DecisionFacts => ({
  ...decisionRecorded().data.facts,
  ...changes,
});
export const goodPolicy = (changes: Partial<typeof recordedPolicy> = {}): typeof recordedPolicy => ({
  ...recordedPolicy,
  ...changes,
});
const recordedPolicy = decisionRecorded().data.buyerPolicy;

const { price, network, payTo, trustScore, recentFailureRate, recentFinishedJobs } = goodFacts();

/** A sound service that asks $0.003; `changes`: what it is otherwise. */
export const decideDeps = ({ deps }: Pick<World, 'deps'>, changes: Partial<DecideDeps> = {}): DecideDeps => ({
  ...deps,
  market: async () => ({ trustScore, recentFailureRate, recentFinishedJobs }),
  offer: { price, network, payTo },
  payer: null,
  ...changes,
});

type Asked = {
  readonly action?: WebhookRequest;
  readonly hasKey?: boolean;
  readonly buyerPolicy?: BuyerPolicyRequest;
  readonly deps?: Partial<DecideDeps>;
};

export const decide = (
  it: Pick<World, 'deps'>,
  { action = plainAction(), hasKey, buyerPolicy = {}, deps = {} }: Asked = {},
) =>
  decideWebhook(decideDeps(it, deps), {
    action,
    hasKey: hasKey ?? action.idempotencyKey !== undefined,
    buyerPolicy,
  });

export async function decided(it: Pick<World, 'deps'>, asked: Asked = {}) {
  const answer = await decide(it, asked);
  assert.ok(!isRefused(answer), 'a decision, not a refusal');
  return { decision: answer };
}

/** Nothing about it warns. `idempotencyKey: undefined` is none. */
export function plainAction(changes: { [K in keyof WebhookRequest]?: WebhookRequest[K] | undefined } = {}) {
  const all = Object.entries({ ...webhook(), ...changes });
  return Object.fromEntries(all.filter(([, value]) => value !== undefined)) as WebhookRequest;
}

/** The sample payment; `presented: null` is a call in demo mode. */
export function guidedInput(decisionId: string, changes: Partial<GuidedInput> = {}): GuidedInput {
  const presented = changes.presented === undefined ? presentedPayment() : changes.presented;
  return {
    decisionId,
    action: plainAction(),
    payer: presented?.payer ?? 'demo',
    client: '198.51.100.1',
    via: null,
    ...changes,
    presented,
  };
}

/** The code of the refusal, or `ran`, or `replayed`. */
export async function guided(
  it: Pick<World, 'deps'>,
  decisionId: string,
  changes: Partial<GuidedInput> = {},
) {
  const answer = await executeGuidedWebhook(it.deps, guidedInput(decisionId, changes));
  if (isRefused(answer)) return answer.refused;
  return answer.execution.replay ? 'replayed' : 'ran';
}

export async function guidedAnswer(
  it: Pick<World, 'deps'>,
  decisionId: string,
  changes: Partial<GuidedInput> = {},
): Promise<Guided> {
  const answer = await executeGuidedWebhook(it.deps, guidedInput(decisionId, changes));
  assert.ok(!isRefused(answer), 'an execution, not a refusal');
  return answer;
}
