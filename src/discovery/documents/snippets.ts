// The code snippets for readers, by group. Each is whole and runs as it stands; a test runs every one of them as served.

import type { Facts } from '#src/discovery/facts.ts';
import { ROUTES } from '#src/discovery/routes.ts';
import { serviceLinks } from '#src/discovery/service-links.ts';
import { advancedSurfaces } from '#src/discovery/snippets/advanced-surfaces.ts';
import { buyerPolicyGroup } from '#src/discovery/snippets/buyer-policy.ts';
import { decisionFirst } from '#src/discovery/snippets/decision-first.ts';
import { discovery } from '#src/discovery/snippets/discovery.ts';
import { paidCall } from '#src/discovery/snippets/paid-call.ts';
import { verification } from '#src/discovery/snippets/verification.ts';
import { heading, paymentTerms } from './document-parts.ts';

export type Snippet = {
  readonly id: string;
  readonly title: string;
  /** `shell` is for POSIX sh with curl, `json` a file of configuration. */
  readonly language: 'shell' | 'typescript' | 'python' | 'json';
  readonly description: string;
  readonly code: string;
};

export type SnippetGroup = {
  readonly id: string;
  readonly title: string;
  readonly description: string;
  readonly snippets: readonly Snippet[];
};

export const snippetGroups = (facts: Facts): readonly SnippetGroup[] => [
  discovery(facts),
  paidCall(facts),
  decisionFirst(facts),
  verification(facts),
  advancedSurfaces(facts),
  buyerPolicyGroup(facts),
];

/** The snippet of that id, which must be one. */
export function snippet(facts: Facts, id: string): Snippet {
  const all = snippetGroups(facts).flatMap(({ snippets }) => snippets);
  const found = all.find((one) => one.id === id);
  if (found === undefined) throw new Error(`there is no snippet ${id}`);
  return found;
}

/** The snippets document. `payment.required`: whether payment is enforced now; `payment.route`: the classic one. */
export function snippetsDocument(facts: Facts) {
  const { openapi, catalog, quickstart, pricing, mcpManifest, keys, docs } = serviceLinks(facts);
  return {
    ...heading(facts),
    purpose:
      'Code to find, judge, pay, execute and verify with: each snippet is whole and runs as it stands. Put your own target in place of https://example.com/hook.',
    payment: { ...paymentTerms(facts), route: ROUTES.execute.path },
    groups: snippetGroups(facts),
    links: { openapi, catalog, quickstart, pricing, mcpManifest, keys, docs },
  };
}
