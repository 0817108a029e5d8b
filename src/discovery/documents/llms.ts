// The guide for language models, in the format of llmstxt.org, under 4 kB.

import { chargeText } from '#src/discovery/document.ts';
import type { Facts } from '#src/discovery/facts.ts';
import { AVOID_WHEN, callOrder, PURPOSE, repeats, testTarget, USE_WHEN } from '#src/discovery/guidance.ts';
import { ROUTES, type RouteFacts } from '#src/discovery/routes.ts';
import { utf8 } from '#src/domain/encoding.ts';
import { SERVICE } from '#src/domain/limits.ts';

const MAX_BYTES = 3999;

/** Links are absolute if the text then fits, else relative to the base address, which it contains once. */
export function llmsText(facts: Facts): string {
  const absolute = guide(facts, facts.baseUrl);
  return utf8(absolute).byteLength <= MAX_BYTES ? absolute : guide(facts, '');
}

function guide(facts: Facts, before: string): string {
  const link = (name: string, { path }: RouteFacts, notes: string) =>
    `- [${name}](${before}${path}): ${notes}`;
  return `# ${SERVICE.name}

> ${PURPOSE} ${chargeText(facts)}

Use it for ${USE_WHEN} Not for ${AVOID_WHEN}

Order of calls, below ${facts.baseUrl}:

${callOrder(facts)
  .map((step, i) => `${i + 1}. ${step}`)
  .join('\n')}

Repeats: ${repeats(facts)}

Tests: ${testTarget(facts)}

## Interface

${link('OpenAPI', ROUTES.openapi, 'every operation, with schemas')}
${link('Index', ROUTES.index, 'every operation with its address and price')}
${link('All documents', ROUTES.discovery, 'every document and well-known file')}
${link('MCP', ROUTES.mcpManifest, `the same operations as tools; the server is POST ${ROUTES.mcp.path}`)}

## Guides

${link('Quickstart', ROUTES.quickstart, 'a minimal request and the order of calls')}
${link('Snippets', ROUTES.snippets, 'curl, TypeScript, Python, MCP; verifiers for targets')}
${link('Catalog', ROUTES.catalog, 'templates for typical targets')}
${link('Pricing', ROUTES.pricing, 'when a call is charged and when not')}
${link('Capabilities', ROUTES.capabilities, 'what it does and does not do, with every limit')}
${link('Secrets policy', ROUTES.secretsPolicy, 'what to send and what never to send')}

## Trust

${link('Trust summary', ROUTES.trust, 'measured facts')}
${link('Recent proofs', ROUTES.recentProofs, 'redacted')}
${link('Verification keys', ROUTES.jwks, `receipts verify offline with these; ${ROUTES.logCheckpoint.path} heads their transparency log, unwitnessed: no witness cosigns it`)}

## Optional

${link('For people', ROUTES.docsPage, 'the interface as a page')}
`;
}
