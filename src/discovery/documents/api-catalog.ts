// `/.well-known/api-catalog`: RFC 9727, as a link set (RFC 9264) with the relations of RFC 8631.

import type { Facts } from '#src/discovery/facts.ts';
import type { RouteFacts } from '#src/discovery/route-facts.ts';
import { ROUTES } from '#src/discovery/routes.ts';
import { JSON_TYPE } from './discovery-index.ts';
import { addressOf } from './document-parts.ts';

/** Two interfaces to the same operations: HTTP and MCP. */
export function apiCatalog(facts: Facts) {
  const at = (route: RouteFacts) => addressOf(facts, route);
  const to = (route: RouteFacts, type: string = JSON_TYPE) => ({ href: at(route), type });
  const shared = {
    'service-doc': [to(ROUTES.docsPage, 'text/html'), to(ROUTES.llms, 'text/plain')],
    status: [to(ROUTES.health), to(ROUTES.statusPage, 'text/html')],
  };
  return {
    linkset: [
      { anchor: at(ROUTES.apiCatalog), item: [{ href: at(ROUTES.index) }, { href: at(ROUTES.mcp) }] },
      {
        anchor: at(ROUTES.index),
        'service-desc': [to(ROUTES.openapi)],
        'service-meta': [to(ROUTES.discovery), to(ROUTES.x402Items)],
        ...shared,
      },
      { anchor: at(ROUTES.mcp), 'service-desc': [to(ROUTES.mcpManifest)], ...shared },
    ],
  };
}
