// Shapes of the catalog and the quickstart, as the interface description tells them.
import { Type } from '@sinclair/typebox';
import { LINK_NAMES } from '#src/discovery/service-links.ts';
import { WebhookRequest } from '#src/domain/job/webhook-request.ts';
import { Closed, Instant, Link } from './schema-parts.ts';
import { SnippetShown } from './snippet-schemas.ts';

export const Texts = Type.Array(Type.String());
export const Path = Type.String({
  description: 'Path below the base address; `{id}` stands for an identifier.',
});

export const heading = {
  ok: Type.Boolean(),
  service: Type.String(),
  generatedAt: Instant,
};

export const endpoint = {
  method: Type.String(),
  path: Path,
  paid: Type.Boolean({ description: 'A paid route: charged where payment is enforced.' }),
};

export const paymentTerms = {
  required: Type.Boolean({ description: 'Whether payment is enforced now.' }),
  scheme: Type.String(),
  network: Type.String({ description: 'CAIP-2.' }),
  networkName: Type.String(),
  price: Type.String({ description: 'US dollars a call, as in $1.50.' }),
};

const primitive = {
  id: Type.String(),
  ...endpoint,
  price: paymentTerms.price,
  network: paymentTerms.network,
  paymentRequired: paymentTerms.required,
  executionModel: Type.String(),
  proofModel: Type.String(),
};

const surface = {
  id: Type.String(),
  status: Type.String(),
  category: Type.String(),
  title: Type.String(),
  description: Type.String(),
};
const Endpoint = Closed(endpoint);

const Template = Closed({
  ...surface,
  tags: Texts,
  searchPhrases: Texts,
  actionId: Type.String(),
  paidRoute: Path,
  exampleRequest: WebhookRequest,
  buyerValue: Type.String(),
  targetOwnerValue: Type.String(),
  verification: Texts,
});

const PolicyModeTold = Closed({
  id: Type.String(),
  status: Type.String(),
  selected: Type.Boolean({ description: 'The mode in force here.' }),
  title: Type.String(),
  description: Type.String(),
  bestFor: Type.String(),
});

export const CatalogDocument = Closed({
  ...heading,
  description: Type.String(),
  activePrimitive: Closed({ ...primitive, targetPolicyPreset: Type.String() }),
  guidedPrimitive: Closed({ ...primitive, decisionRoute: Path }),
  categories: Texts,
  templates: Type.Array(Template),
  policyModes: Type.Array(PolicyModeTold),
  scheduledActions: Closed({ ...surface, availability: Type.String(), endpoint: Endpoint }),
  browserHandoff: Closed({ ...surface, safeUse: Type.String(), endpoint: Endpoint }),
  secretStorage: Closed({ ...surface, safeUse: Type.String(), endpoint: Endpoint }),
  snippets: Type.Array(SnippetShown),
  discoveryKeywords: Texts,
  links: Closed(Object.fromEntries(LINK_NAMES.map((name) => [name, Link]))),
});

export const QuickstartDocument = Closed({
  ...heading,
  purpose: Type.String(),
  recommendedUse: Type.String(),
  payment: Closed({ ...paymentTerms, route: Path, guidedRoute: Path }),
  minimalRequest: WebhookRequest,
  callFlow: Texts,
  decisionRules: Closed({ useWhen: Texts, avoidWhen: Texts }),
  limits: Closed({
    allowedMethods: Texts,
    maxRetryAttempts: Type.Integer(),
    maxWebhookTimeoutMs: Type.Integer(),
    privateNetworkTargetsBlocked: Type.Boolean(),
  }),
  snippets: Type.Array(SnippetShown),
  verify: Closed(
    { job: Link, receipt: Link, publicProofs: Link, proofBadge: Link },
    'A part in braces stands for an identifier (RFC 6570).',
  ),
  nextDiscoverySteps: Type.Array(Link),
});
