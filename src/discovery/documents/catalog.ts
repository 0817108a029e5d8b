// The catalog: what can be bought, for which targets, under which policy, and what is free beside it.

import type { Facts } from '#src/discovery/facts.ts';
import { serviceLinks } from '#src/discovery/service-links.ts';
import { chargeInWords, heading } from './document-parts.ts';
import { policyModes } from './policy-modes.ts';
import {
  activePrimitive,
  browserHandoff,
  guidedPrimitive,
  scheduledActions,
  secretStorage,
} from './primitives.ts';
import { snippet } from './snippets.ts';
import { CATEGORIES, templates } from './templates.ts';

export const catalogDocument = (facts: Facts) => ({
  ...heading(facts),
  description:
    'One outbound HTTPS request to a public target, paid per call, without an account, answered with a signed receipt of ' +
    `the attempt and its outcome that anyone can verify. ${chargeInWords(facts)}`,
  activePrimitive: activePrimitive(facts),
  guidedPrimitive: guidedPrimitive(facts),
  categories: CATEGORIES,
  templates: templates(),
  policyModes: policyModes(facts),
  scheduledActions: scheduledActions(),
  browserHandoff: browserHandoff(),
  secretStorage: secretStorage(),
  snippets: ['curl-discovery', 'typescript-execute', 'typescript-guided'].map((id) => snippet(facts, id)),
  discoveryKeywords: KEYWORDS,
  links: serviceLinks(facts),
});

const KEYWORDS = [
  'webhook',
  'outbound webhook',
  'webhook relay',
  'HTTPS request',
  'HTTP callback',
  'agent action',
  'pay per call',
  'x402',
  'USDC',
  'micropayment',
  'signed receipt',
  'proof of execution',
  'proof of delivery',
  'verifiable receipt',
  'idempotency',
  'replay protection',
  'decision before payment',
  'buyer policy',
  'chat notification',
  'bot message',
  'no-code automation',
  'CI dispatch',
  'alert',
  'analytics event',
  'CRM update',
  'ticket',
  'MCP',
];
