// The addresses that documents name: every one answers a plain GET.
import { addressOf } from '#src/discovery/documents/document-parts.ts';
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

export const LINK_NAMES: readonly string[] = Object.keys(LINKED);

/** Absolute. */
export function serviceLinks(facts: Facts): Readonly<Record<LinkName, string>> {
  const links = Object.entries(LINKED).map(([name, route]) => [name, addressOf(facts, route)]);
  return Object.fromEntries(links) as Record<LinkName, string>;
}
