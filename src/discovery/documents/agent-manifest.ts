// `/.well-known/agent.json`: who this is for an agent that looks there first. Not an A2A agent card, and not shaped like
// one: the service does not speak A2A, and `protocols` tells what it does speak.

import type { Facts } from '#src/discovery/facts.ts';
import type { RouteFacts } from '#src/discovery/route-facts.ts';
import { ROUTES } from '#src/discovery/routes.ts';
import { SERVICE } from '#src/domain/limits.ts';
import { addressOf, endpointOf, paymentTerms } from './document-parts.ts';
import { PURPOSE } from './guidance.ts';

export function agentManifest(facts: Facts) {
  const at = (route: RouteFacts) => addressOf(facts, route);
  const action = (id: string, route: RouteFacts) => ({
    id,
    ...endpointOf(route),
    address: at(route),
    description: route.description,
  });
  return {
    name: SERVICE.name,
    version: SERVICE.version,
    description: PURPOSE,
    url: at(ROUTES.frontPage),
    protocols: ['http', 'mcp', 'x402'],
    actions: [
      action('execute.webhook', ROUTES.execute),
      action('execute.guided_webhook', ROUTES.executeGuided),
      action('decide.webhook', ROUTES.decide),
      action('policy.check', ROUTES.checkPolicy),
      action('receipt.verify', ROUTES.verifyReceipt),
    ],
    payment: paymentTerms(facts),
    interfaces: {
      openapi: at(ROUTES.openapi),
      mcp: { endpoint: at(ROUTES.mcp), transport: 'streamable-http', manifest: at(ROUTES.mcpManifest) },
      x402: at(ROUTES.x402Items),
    },
    documents: { guide: at(ROUTES.llms), quickstart: at(ROUTES.quickstart), all: at(ROUTES.discovery) },
    verification: { keys: at(ROUTES.jwks), did: at(ROUTES.did), trust: at(ROUTES.trust) },
    updated: facts.generatedAt,
  };
}
