// The MCP server's manifest: where it is, what it offers, how a paid tool is paid for.

import type { Facts } from '#src/discovery/facts.ts';
import { MCP_TOOLS } from '#src/discovery/mcp-tools.ts';
import { ROUTES } from '#src/discovery/routes.ts';
import { SERVICE } from '#src/domain/limits.ts';
import { addressOf, endpointOf, heading, paymentTerms } from './document-parts.ts';
import { PURPOSE } from './guidance.ts';

/** `protocolVersions`: those that the server speaks, the newest first. */
export function mcpManifest(facts: Facts, protocolVersions: readonly string[]) {
  return {
    ...heading(facts),
    name: SERVICE.name,
    version: SERVICE.version,
    description: PURPOSE,
    endpoint: addressOf(facts, ROUTES.mcp),
    transport: 'streamable-http',
    protocolVersions,
    tools: MCP_TOOLS.map(({ name, title, description, route }) => ({
      name,
      title,
      description,
      ...endpointOf(route),
      ...(route.paid ? { price: facts.offer.price } : {}),
    })),
    payment: {
      ...paymentTerms(facts),
      requestMeta: 'x402/payment',
      responseMeta: 'x402/payment-response',
      unpaidCall: UNPAID,
      howToPay: HOW_TO_PAY,
    },
    documentation: addressOf(facts, ROUTES.snippets),
  };
}

// x402's MCP transport.
const UNPAID =
  'Where payment is required, a paid tool called without payment answers a result with isError true and the payment requirements in structuredContent and as JSON in content[0].text. Nothing is executed.';
const HOW_TO_PAY =
  'Call the same tool with the same arguments and the signed payment payload in _meta["x402/payment"]; the settlement comes back in _meta["x402/payment-response"].';
