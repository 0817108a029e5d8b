// The addresses that documents and responses contain. Each answers GET.

import { Closed, Link } from '#src/domain/schema-parts.ts';
import { addressOf } from './document.ts';
import type { Facts } from './facts.ts';
import { ROUTES } from './routes.ts';

const LINKED = {
  index: ROUTES.index,
  discovery: ROUTES.discovery,
  catalog: ROUTES.catalog,
  quickstart: ROUTES.quickstart,
  snippets: ROUTES.snippets,
  pricing: ROUTES.pricing,
  capabilities: ROUTES.capabilities,
  secretsPolicy: ROUTES.secretsPolicy,
  handoffCapabilities: ROUTES.handoffCapabilities,
  scheduleCapabilities: ROUTES.scheduleCapabilities,
  mcpManifest: ROUTES.mcpManifest,
  openapi: ROUTES.openapi,
  llms: ROUTES.llms,
  x402: ROUTES.x402Items,
  keys: ROUTES.jwks,
  trust: ROUTES.trust,
  monitoring: ROUTES.monitoring,
  recentProofs: ROUTES.recentProofs,
  recentDecisions: ROUTES.recentDecisions,
  health: ROUTES.health,
  docs: ROUTES.docsPage,
} as const;

type LinkName = keyof typeof LINKED;

export const LinksShown = Closed(
  Object.fromEntries(Object.keys(LINKED).map((name) => [name, Link])) as Record<LinkName, typeof Link>,
);

/** Absolute. */
export function serviceLinks(facts: Facts): Record<LinkName, string> {
  const links = Object.entries(LINKED).map(([name, route]) => [name, addressOf(facts, route)]);
  return Object.fromEntries(links) as Record<LinkName, string>;
}

/** Value of the `Link` header (RFC 8288, RFC 8631, RFC 9727). `baseUrl`: without a trailing slash. */
export function linkHeader(baseUrl: string): string {
  return LINKS.map(([{ path }, rel, type]) => `<${baseUrl}${path}>; rel="${rel}"; type="${type}"`).join(', ');
}

const LINKS = [
  [ROUTES.apiCatalog, 'api-catalog', 'application/linkset+json'],
  [ROUTES.openapi, 'service-desc', 'application/json'],
  [ROUTES.docsPage, 'service-doc', 'text/html'],
  [ROUTES.statusPage, 'status', 'text/html'],
  [ROUTES.llms, 'describedby', 'text/plain'],
] as const;
