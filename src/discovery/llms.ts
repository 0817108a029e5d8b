// The guide for language models: llmstxt.org's form, under 4 kB, so that it can be read whole before anything else.
import { LIMITS, SERVICE } from '../domain/limits.ts';
import { type Facts, networkName } from './facts.ts';
import { pathTemplate, type RouteFacts } from './route-facts.ts';
import { ROUTES } from './routes.ts';

export function llmsText(facts: Facts): string {
  const { baseUrl } = facts;
  const link = (name: string, route: RouteFacts, notes: string) =>
    `- [${name}](${baseUrl}${route.path}): ${notes}`;
  const call = ({ method, path }: RouteFacts) => `\`${method} ${baseUrl}${pathTemplate(path)}\``;
  return `# ${SERVICE.name}

> Makes one outbound HTTPS request to a public target for an agent and answers with a signed receipt of the attempt and its outcome. ${costOf(facts)}

Use it for one bounded side effect (${LIMITS.methods.join(', ')}) that needs proof. Do not use it for private or local addresses, for several steps, or for a target that cannot take a duplicate. Send no wallet keys, seed phrases, database URLs or long-lived admin credentials.

## Order of calls

1. ${call(ROUTES.decide)} with {"action": {"url", "body", "idempotencyKey"}, "buyerPolicy": {"maxPriceUsd"}}: free; read \`decisionId\` and \`recommendation\`.
2. If it is \`pay_and_execute\`: ${call(ROUTES.executeGuided)} with {"decisionId", "action"}, the same action. ${afterThat(facts)}
3. 200: the target answered 2xx. 502: it did not. Both bear \`job\`, \`receipt\` and \`links\`; both are charged once.
4. GET \`links.verifyReceipt\`: done only when \`ok\`, \`signatureVerified\` and every check are true. Keep the receipt id.

Repeat a call that got lost with the same body and the same payment header: nothing is sent or charged twice. After 503 \`payment_unconfirmed\` repeat with that same header, never with a new payment.

## Interface

${link('OpenAPI', ROUTES.openapi, 'every operation, with schemas')}
${link('Index', ROUTES.index, 'every operation with its address and price')}
${link('All documents', ROUTES.discovery, 'every document and well-known file')}
${link('MCP', ROUTES.mcpManifest, `the same as tools; the server is POST ${baseUrl}${ROUTES.mcp.path}`)}

## Guides

${link('Quickstart', ROUTES.quickstart, 'a minimal request and the order of calls')}
${link('Snippets', ROUTES.snippets, 'curl, TypeScript, Python, MCP')}
${link('Catalog', ROUTES.catalog, 'templates for typical targets')}
${link('Pricing', ROUTES.pricing, 'when a call is charged and when not')}
${link('Capabilities', ROUTES.capabilities, 'what it does and does not, with every limit')}
${link('Secrets policy', ROUTES.secretsPolicy, 'what to send and what never')}

## Trust

${link('Trust summary', ROUTES.trust, 'measured facts')}
${link('Recent proofs', ROUTES.recentProofs, 'redacted')}
${link('Verification keys', ROUTES.jwks, 'receipts verify offline with these')}

## Optional

${link('Test target', ROUTES.canary, 'free, to try against')}
${link('For people', ROUTES.docsPage, 'the interface as a page')}
`;
}

function costOf({ askedFor, offer }: Facts): string {
  if (askedFor === null) return 'This deployment runs in demo mode: nobody is charged.';
  return `${offer.price} a call in USDC on ${networkName(offer.network)} (${offer.network}), paid by x402, scheme ${offer.scheme}; no account.`;
}

function afterThat({ askedFor }: Facts): string {
  if (askedFor === null) return 'It needs no payment here.';
  return 'It answers 402: compare price, network and payee with your policy, pay with an x402 client and repeat with the payment header.';
}
