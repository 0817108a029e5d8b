// The quickstart: whether to use the service, the smallest request, and the order of calls.
import { Type } from '@sinclair/typebox';
import {
  addressOf,
  chargeText,
  document,
  methodAndPath,
  Path,
  shownTerms,
  Text,
  Texts,
  termsSchema,
} from '#src/discovery/document.ts';
import type { Facts } from '#src/discovery/facts.ts';
import {
  avoidWhen,
  callOrder,
  DONE_WHEN,
  FAILED_VERIFIES,
  PURPOSE,
  repeats,
  TEST_TARGET,
  USE_WHEN,
} from '#src/discovery/guidance.ts';
import { ROUTES, type RouteFacts } from '#src/discovery/routes.ts';
import { WebhookRequest } from '#src/domain/job/webhook-request.ts';
import { LIMITS, METHODS } from '#src/domain/limits.ts';
import { Closed, Link } from '#src/domain/schema-parts.ts';
import { Snippet, snippet } from './snippets.ts';

export const quickstart = document([ROUTES.quickstart], {
  purpose: Text,
  recommendedUse: Text,
  payment: Closed({ ...termsSchema, route: Path, guidedRoute: Path }),
  minimalRequest: WebhookRequest,
  callFlow: Texts,
  decisionRules: Closed({ useWhen: Texts, avoidWhen: Texts }),
  limits: Closed({
    allowedMethods: Texts,
    maxRetryAttempts: Type.Integer(),
    maxWebhookTimeoutMs: Type.Integer(),
    privateNetworkTargetsBlocked: Type.Boolean(),
  }),
  snippets: Type.Array(Snippet),
  verify: Closed(
    { job: Link, receipt: Link, publicProofs: Link, proofBadge: Link },
    'A part in braces is replaced by an identifier (RFC 6570).',
  ),
  nextDiscoverySteps: Type.Array(Link),
})((facts) => ({
  purpose: PURPOSE,
  recommendedUse:
    'One bounded side effect that needs proof, by an agent that pays per call and has no account. Ask for a decision ' +
    `first, pay the guided route, verify the receipt, keep its id. ${chargeText(facts)}`,
  payment: {
    ...shownTerms(facts),
    route: ROUTES.execute.path,
    guidedRoute: ROUTES.executeGuided.path,
  },
  minimalRequest: minimalRequest(facts),
  callFlow: callFlow(facts),
  decisionRules: { useWhen: USE_WHEN, avoidWhen: avoidWhen(facts) },
  limits: {
    allowedMethods: [...METHODS],
    maxRetryAttempts: LIMITS.retryAttempts.max,
    maxWebhookTimeoutMs: LIMITS.timeoutMs.max,
    privateNetworkTargetsBlocked: true,
  },
  snippets: SNIPPETS.map((id) => snippet(facts, id)),
  verify: {
    job: addressOf(facts, ROUTES.verifyJob),
    receipt: addressOf(facts, ROUTES.verifyReceipt),
    publicProofs: addressOf(facts, ROUTES.recentProofs),
    proofBadge: addressOf(facts, ROUTES.proofBadge),
  },
  nextDiscoverySteps: NEXT.map((route) => addressOf(facts, route)),
}));

/** Calls the canary if that can be a target (targets are https), so that the request works unchanged. */
function minimalRequest(facts: Facts): WebhookRequest {
  return {
    url: facts.baseUrl.startsWith('https://')
      ? addressOf(facts, ROUTES.canaryPost)
      : 'https://example.com/hook',
    method: 'POST',
    body: { hello: 'world' },
    idempotencyKey: 'hello-1',
  };
}

function callFlow(facts: Facts): string[] {
  const [decide = '', execute = ''] = callOrder(facts);
  return [
    `Read the discovery documents: ${methodAndPath(ROUTES.catalog)}, ${methodAndPath(ROUTES.pricing)} and ${methodAndPath(ROUTES.capabilities)}; ${methodAndPath(ROUTES.openapi)} has every schema.`,
    `Prepare the action: url, method, headers, body, and an idempotencyKey of its own for each task. To test: ${TEST_TARGET}`,
    decide,
    `Optional: ${methodAndPath(ROUTES.checkPolicy)} with the action (free) to see the target verdict and which headers would be forwarded.`,
    'On 402 compare price, network, payTo, asset and resource with your own policy before you sign anything; stop if one differs.',
    execute,
    'Read links.job or links.receipt of the answer. 502 is a paid answer too: the target failed, and the receipt contains the outcome.',
    `Verify: ${methodAndPath(ROUTES.verifyJob)} or ${methodAndPath(ROUTES.verifyReceipt)}. The action is complete only when ${DONE_WHEN}. ${FAILED_VERIFIES} To verify without this service: keep \`receipt.jws\` and the answer of ${methodAndPath(ROUTES.jwks)}; the verifier needs nothing else (npm install ${addressOf(facts, ROUTES.verifierPackage)}, or one file: ${ROUTES.verifierModule.path}, ${ROUTES.verifierPython.path}), and the page ${ROUTES.verifyPage.path} verifies in a browser.`,
    `Store the receipt id with your task record; ${repeats(facts)}`,
  ];
}

const SNIPPETS = ['curl-decide', 'curl-execute', 'curl-verify', 'javascript-guided'];

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
