// The two paid actions and the three free surfaces beside them, as the catalog tells them.

import type { Facts } from '#src/discovery/facts.ts';
import { ROUTES } from '#src/discovery/routes.ts';
import { endpointOf, paymentTerms } from './document-parts.ts';
import { policyPreset } from './policy-modes.ts';

const PROOF_MODEL =
  'Signed receipt: a compact JWS (EdDSA over canonical JSON) on every attempt and the outcome, verifiable offline with ' +
  'the published key; target, headers and bodies stand in it as salted commitments.';

const priced = (facts: Facts) => {
  const { price, network, required } = paymentTerms(facts);
  return { price, network, paymentRequired: required };
};

export const activePrimitive = (facts: Facts) => ({
  id: 'execute.webhook',
  ...endpointOf(ROUTES.execute),
  ...priced(facts),
  executionModel:
    'Immediate and one-shot: one outbound HTTPS request, 1 to 3 attempts, answered when it is over.',
  proofModel: PROOF_MODEL,
  targetPolicyPreset: policyPreset(facts.policyMode),
});

export const guidedPrimitive = (facts: Facts) => ({
  id: 'execute.guided_webhook',
  ...endpointOf(ROUTES.executeGuided),
  ...priced(facts),
  executionModel: 'As execute.webhook, for exactly the action that a free decision approved, once per payer.',
  proofModel: `${PROOF_MODEL} The receipt names the decision and its hash.`,
  decisionRoute: ROUTES.decide.path,
});

export const scheduledActions = () => ({
  id: 'scheduled.webhook',
  status: 'preview-only',
  category: 'automation',
  title: 'Schedule preview',
  description:
    'Checks the shape of a schedule and the target policy, and shows the next runs. Nothing is scheduled, executed or charged.',
  availability:
    'Durable paid scheduling is not active. It is planned to charge once per executed run, not per schedule definition, ' +
    'and to answer with a schedule id and the links of each run.',
  endpoint: endpointOf(ROUTES.schedulePreview),
});

export const browserHandoff = () => ({
  id: 'browser.handoff',
  status: 'active-handoff-only',
  category: 'automation',
  title: 'Browser handoff package',
  description:
    'Builds a structured package of browser steps for an external browser-capable agent. No step is executed here and no paid receipt comes of it.',
  safeUse:
    'Hand the package to an agent that you trust with the site. Put no passwords or session tokens into its texts.',
  endpoint: endpointOf(ROUTES.handoff),
});

export const secretStorage = () => ({
  id: 'secrets.policy',
  status: 'policy-only',
  category: 'ops',
  title: 'Secret handling policy',
  description:
    'No long-lived target-side secret is stored: credentials come with each call and go on to the target only.',
  safeUse:
    'Use target-owned webhook secrets or short-lived per-request headers. Never send wallet private keys, seed phrases, ' +
    'database URLs or long-lived admin credentials.',
  endpoint: endpointOf(ROUTES.secretsPolicy),
});
