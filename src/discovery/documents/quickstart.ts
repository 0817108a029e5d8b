// The quickstart: whether to use the service, the smallest request, and the order of calls.

import { DONE_WHEN, FAILED_VERIFIES } from '#src/discovery/completion.ts';
import type { Facts } from '#src/discovery/facts.ts';
import { pathTemplate, type RouteFacts } from '#src/discovery/route-facts.ts';
import { ROUTES } from '#src/discovery/routes.ts';
import { testTarget } from '#src/discovery/test-target.ts';
import type { WebhookRequest } from '#src/domain/job/webhook-request.ts';
import { LIMITS } from '#src/domain/limits.ts';
import { addressOf, chargeInWords, heading, isOwnTarget, paymentTerms } from './document-parts.ts';
import { REPEATED_UNSAFELY } from './guidance.ts';
import { snippet } from './snippets.ts';

export function quickstartDocument(facts: Facts) {
  const at = (route: RouteFacts) => addressOf(facts, route);
  return {
    ...heading(facts),
    purpose:
      'Execute one outbound HTTPS request to a public target and get a signed receipt of the attempt and its outcome.',
    recommendedUse:
      'One bounded side effect that needs proof, by an agent that pays per call and has no account. Ask for a decision ' +
      `first, pay the guided route, verify the receipt, keep its id. ${chargeInWords(facts)}`,
    payment: {
      ...paymentTerms(facts),
      route: ROUTES.execute.path,
      guidedRoute: ROUTES.executeGuided.path,
    },
    minimalRequest: minimalRequest(facts),
    callFlow: callFlow(facts),
    decisionRules: DECISION_RULES,
    limits: {
      allowedMethods: LIMITS.methods,
      maxRetryAttempts: LIMITS.attempts.max,
      maxWebhookTimeoutMs: LIMITS.timeoutMs.max,
      privateNetworkTargetsBlocked: true,
    },
    snippets: SNIPPETS.map((id) => snippet(facts, id)),
    verify: {
      job: at(ROUTES.verifyJob),
      receipt: at(ROUTES.verifyReceipt),
      publicProofs: at(ROUTES.recentProofs),
      proofBadge: at(ROUTES.proofBadge),
    },
    nextDiscoverySteps: NEXT.map(at),
  };
}

/** To the canary where that can be a target, so that it works as it stands. */
function minimalRequest(facts: Facts): WebhookRequest {
  return {
    url: isOwnTarget(facts) ? addressOf(facts, ROUTES.canaryPost) : 'https://example.com/hook',
    method: 'POST',
    body: { hello: 'world' },
    idempotencyKey: 'hello-1',
  };
}

const told = ({ method, path }: RouteFacts) => `${method} ${pathTemplate(path)}`;

const callFlow = (facts: Facts): readonly string[] => [
  `Read the discovery documents: ${told(ROUTES.catalog)}, ${told(ROUTES.pricing)} and ${told(ROUTES.capabilities)}; ${told(ROUTES.openapi)} has every schema.`,
  `Prepare the action: url, method, headers, body, and an idempotencyKey of its own for each task. To test: ${testTarget(facts)}`,
  `${told(ROUTES.decide)} with the action and your buyerPolicy (free); keep decisionId and read recommendation.`,
  `Optional: ${told(ROUTES.checkPolicy)} with the action (free) to see the target verdict and which headers would be forwarded.`,
  'On 402 compare price, network, payTo, asset and resource with your own policy before you sign anything; stop where one differs.',
  `Where the recommendation is pay_and_execute, pay ${told(ROUTES.executeGuided)} with decisionId and the same action; or pay ${told(ROUTES.execute)} with the action alone.`,
  'Read links.job or links.receipt of the answer. 502 is a paid answer too: the target failed, and the receipt says how.',
  `Verify: ${told(ROUTES.verifyJob)} or ${told(ROUTES.verifyReceipt)}. The action is complete only when ${DONE_WHEN}. ${FAILED_VERIFIES}`,
  'Store the receipt id with your task record. After a lost answer or a 503 repeat the same request with the same payment header and idempotencyKey: it is not charged or sent twice.',
];

const DECISION_RULES = {
  useWhen: [
    'The task needs one bounded side effect at a public HTTPS endpoint.',
    'You want to pay per action, without an account or an API key.',
    'You need proof of the attempt and its outcome that others can verify.',
  ],
  avoidWhen: [
    'The target is on localhost, in a private network, or not HTTPS.',
    'The task takes several steps, or needs the body of the target’s answer: only its status is returned.',
    'The price is not acceptable for the value of the call.',
    `The target ${REPEATED_UNSAFELY}.`,
  ],
} as const;

const SNIPPETS = ['curl-decide', 'curl-execute', 'curl-verify', 'typescript-guided'] as const;

const NEXT: readonly RouteFacts[] = [
  ROUTES.catalog,
  ROUTES.pricing,
  ROUTES.capabilities,
  ROUTES.secretsPolicy,
  ROUTES.snippets,
  ROUTES.trust,
  ROUTES.openapi,
  ROUTES.discovery,
];
