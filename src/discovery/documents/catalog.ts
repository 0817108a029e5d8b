// The catalog: paid actions, templates for targets, policy modes, and free surfaces.
import { type Static, Type } from '@sinclair/typebox';
import {
  chargeText,
  document,
  endpointSchema,
  endpointShown,
  LinksShown,
  Path,
  serviceLinks,
  shownTerms,
  Text,
  Texts,
  termsSchema,
} from '#src/discovery/document.ts';
import type { Facts } from '#src/discovery/facts.ts';
import { DONE_WHEN, FAILED_VERIFIES, PURPOSE } from '#src/discovery/guidance.ts';
import { PAID_ROUTES } from '#src/discovery/paid-routes.ts';
import { pathTemplate, ROUTES } from '#src/discovery/routes.ts';
import type { PolicyMode as Mode } from '#src/domain/destination/policy.ts';
import type { Route } from '#src/domain/event-fields.ts';
import { Closed } from '#src/domain/schema-parts.ts';
import { browserHandoff, scheduledActionsOf, secretStorage, surfaceSchema } from './free-surfaces.ts';
import { Snippet, snippet } from './snippets.ts';
import { CATEGORIES, TEMPLATES, templateSchema } from './templates.ts';

const primitiveSchema = {
  id: Text,
  ...endpointSchema,
  price: termsSchema.price,
  network: termsSchema.network,
  paymentRequired: termsSchema.required,
  executionModel: Text,
  proofModel: Text,
};

const { evidence: _, ...shownOfTemplate } = templateSchema;
const Template = Closed({
  ...shownOfTemplate,
  status: Text,
  actionId: Text,
  paidRoute: Path,
  verification: Texts,
});
const PolicyMode = Closed({ id: Text, status: Text, title: Text, description: Text, bestFor: Text });

const MODES = {
  'open-public-https': {
    status: 'active',
    title: 'Open public HTTPS',
    description: 'Any public HTTPS target may be called; localhost and private networks remain blocked.',
    bestFor: 'Agents whose targets are not known in advance.',
  },
  'blocklist-quota': {
    status: 'active',
    title: 'Block list and quota',
    description:
      'The open mode, with known bad target hosts blocked and repeated traffic to the same target host throttled.',
    bestFor: 'Public deployments that protect targets from abuse.',
  },
  allowlist: {
    status: 'supported',
    title: 'Allow list',
    description: 'Execution is restricted to approved target hosts.',
    bestFor: 'Teams that let their agents reach known endpoints only.',
  },
} as const satisfies Readonly<Record<Mode, unknown>>;

/** The short name of a mode: the open one is the preset `open`. */
export const policyPreset = (mode: Mode) => (mode === 'open-public-https' ? 'open' : mode);

export const catalog = document([ROUTES.catalog], {
  description: Text,
  activePrimitive: Closed({ ...primitiveSchema, targetPolicyPreset: Text }),
  guidedPrimitive: Closed({ ...primitiveSchema, decisionRoute: Path }),
  categories: Texts,
  templates: Type.Array(Template),
  policyModes: Type.Array(PolicyMode),
  scheduledActions: Closed({ ...surfaceSchema, availability: Text }),
  browserHandoff: Closed({ ...surfaceSchema, safeUse: Text }),
  secretStorage: Closed({ ...surfaceSchema, safeUse: Text }),
  snippets: Type.Array(Snippet),
  discoveryKeywords: Texts,
  links: LinksShown,
})((facts) => ({
  description: `${PURPOSE} ${chargeText(facts)}`,
  activePrimitive: activePrimitive(facts),
  guidedPrimitive: guidedPrimitive(facts),
  categories: [...CATEGORIES],
  templates: templates(),
  policyModes: Object.entries(MODES).map(([id, mode]) => ({ id, ...mode })),
  scheduledActions: scheduledActionsOf(facts),
  browserHandoff,
  secretStorage,
  snippets: ['curl-discovery', 'javascript-execute', 'javascript-guided'].map((id) => snippet(facts, id)),
  discoveryKeywords: KEYWORDS,
  links: serviceLinks(facts),
}));

const PROOF_MODEL = `Signed receipt: a compact JWS (EdDSA over canonical JSON) on every attempt and the outcome, verifiable offline with the published keys and the verifier, ${ROUTES.verifierPackage.path} or ${ROUTES.verifierPython.path}.`;

function primitive(facts: Facts, name: Route) {
  const { price, network, required } = shownTerms(facts);
  const route = PAID_ROUTES[name];
  return { id: route.actionId, ...endpointShown(route), price, network, paymentRequired: required };
}

const activePrimitive = (facts: Facts) => ({
  ...primitive(facts, 'execute/webhook'),
  executionModel:
    'Immediate and one-shot: one outbound HTTPS request, 1 to 3 attempts, answered when it is complete.',
  proofModel: PROOF_MODEL,
  targetPolicyPreset: policyPreset(facts.policyMode),
});

const guidedPrimitive = (facts: Facts) => ({
  ...primitive(facts, 'execute/guided-webhook'),
  executionModel:
    'The same as execute.webhook, for exactly the action that a free decision approved, once per payer.',
  proofModel: `${PROOF_MODEL} The receipt names the decision and its hash.`,
  decisionRoute: ROUTES.decide.path,
});

function templates(): Static<typeof Template>[] {
  const { actionId, path } = PAID_ROUTES['execute/webhook'];
  return TEMPLATES.map(({ evidence, ...template }) => ({
    ...template,
    status: 'active',
    actionId,
    paidRoute: path,
    verification: [
      `Done only when ${DONE_WHEN}.`,
      `The report is GET ${pathTemplate(ROUTES.verifyReceipt.path)}. ${FAILED_VERIFIES}`,
      evidence,
    ],
  }));
}

const KEYWORDS = [
  ...['webhook', 'webhook relay', 'pay per call', 'x402', 'USDC', 'signed receipt', 'proof of execution'],
  ...['idempotency', 'buyer policy', 'no-code automation', 'CI dispatch', 'MCP'],
];
