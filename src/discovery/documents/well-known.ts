// The files for crawlers and language models: agent manifest, API catalog, x402 resources, robots.txt, llms.txt.
import { addressOf, chargeText, endpointShown, serviceLinks, shownTerms } from '#src/discovery/document.ts';
import type { Facts } from '#src/discovery/facts.ts';
import {
  callOrder,
  fieldsText,
  HOW_TO_PAY,
  notWhenText,
  PURPOSE,
  repeatsInShort,
  TEST_TARGET,
} from '#src/discovery/guidance.ts';
import { ACTION, ANSWER_IN_SHORT, PAID_LIST } from '#src/discovery/paid-routes.ts';
import { JSON_TYPE, ROUTES, type RouteFacts, SCHEDULE_ROUTES } from '#src/discovery/routes.ts';
import { utf8 } from '#src/domain/encoding.ts';
import { SERVICE } from '#src/domain/limits.ts';

/**
 * `/.well-known/agent.json`: a manifest for agents that read this address first. It is not an A2A agent card:
 * the service does not implement A2A.
 */
export function agentManifest(facts: Facts) {
  const at = (route: RouteFacts) => addressOf(facts, route);
  const action = (id: string, route: RouteFacts) => ({
    id,
    ...endpointShown(route),
    description: route.description,
  });
  return {
    name: SERVICE.name,
    version: SERVICE.version,
    description: PURPOSE,
    url: at(ROUTES.frontPage),
    protocols: ['http', 'mcp', 'x402'],
    actions: [
      ...PAID_LIST.map(([, route]) => action(route.actionId, route)),
      ...(facts.schedules === undefined ? [] : [action('scheduled.webhook', SCHEDULE_ROUTES.createSchedule)]),
      action('decide.webhook', ROUTES.decide),
      action('policy.check', ROUTES.checkPolicy),
      action('receipt.verify', ROUTES.verifyReceipt),
    ],
    payment: shownTerms(facts),
    interfaces: {
      openapi: at(ROUTES.openapi),
      mcp: { endpoint: at(ROUTES.mcp), transport: 'streamable-http', manifest: at(ROUTES.mcpManifest) },
    },
    links: serviceLinks(facts),
    updated: facts.generatedAt,
  };
}

/** `/.well-known/api-catalog` (RFC 9727): a link set (RFC 9264) with the relations of RFC 8631, for HTTP and MCP. */
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

const X402_VERSION = 2;

/** `/.well-known/x402`: the addresses for sale, for crawlers. In demo mode nothing is for sale: the list is empty. */
export function x402Manifest(facts: Facts) {
  return {
    x402Version: X402_VERSION,
    kind: 'resource-server',
    name: SERVICE.name,
    description: `${PURPOSE} ${chargeText(facts)}`,
    resources: forSale(facts).map(({ resource }) => resource),
    docs: addressOf(facts, ROUTES.docsPage),
    updated: facts.generatedAt,
  };
}

/** `/.well-known/x402.json`: the same resources, in the format of a facilitator's /discovery/resources. */
export function x402Items(facts: Facts) {
  const items = forSale(facts).map(({ description, resource, accepts, extensions }) => ({
    resource,
    type: 'http',
    x402Version: X402_VERSION,
    accepts,
    lastUpdated: facts.generatedAt,
    description,
    mimeType: 'application/json',
    serviceName: SERVICE.name,
    iconUrl: addressOf(facts, ROUTES.favicon),
    extensions,
  }));
  return {
    x402Version: X402_VERSION,
    lastUpdated: facts.generatedAt,
    items,
    pagination: { limit: items.length, offset: 0, total: items.length },
  };
}

/** The fund route has no address before a schedule exists; its 402 is that of the schedule's run. */
const forSale = ({ askedFor, askedForSchedule }: Facts) => [
  ...(askedFor === null
    ? []
    : PAID_LIST.map(([name, { description }]) => ({ description, ...askedFor[name] }))),
  ...(askedForSchedule === null
    ? []
    : [{ description: SCHEDULE_ROUTES.createSchedule.description, ...askedForSchedule }]),
];

/**
 * `/robots.txt` (RFC 9309). All addresses are allowed, records included: agents read through crawlers that obey this file,
 * and must be able to read receipts. Records contain nothing private.
 */
export const robotsText = (
  facts: Facts,
): string => `# Guide for language models: ${addressOf(facts, ROUTES.llms)}
# All documents: ${addressOf(facts, ROUTES.discovery)}
User-agent: *
Allow: /
`;

const MAX_BYTES = 3999;

/**
 * `/llms.txt`, in the format of llmstxt.org, under 4 kB: enough for a call without another document. Links are absolute if the
 * text then fits, else relative to the base address, which it contains once.
 */
export function llmsText(facts: Facts): string {
  const absolute = guide(facts, facts.baseUrl);
  return utf8(absolute).byteLength <= MAX_BYTES ? absolute : guide(facts, '');
}

function guide(facts: Facts, before: string): string {
  const link = (name: string, { path }: RouteFacts, notes: string) =>
    `- [${name}](${before}${path}): ${notes}`;
  const { method: _, ...action } = ACTION;
  const payment = facts.askedFor === null ? '' : `\nPayment: ${HOW_TO_PAY.join(' ')}\n`;
  return `# ${SERVICE.name}

> ${PURPOSE} ${chargeText(facts)}

${notWhenText(facts)}

Order of calls, below ${facts.baseUrl}:

${callOrder(facts)
  .map((step, i) => `${i + 1}. ${step}`)
  .join('\n')}

${fieldsText()}

Action: ${JSON.stringify(action)}
Answer, in part: ${JSON.stringify(ANSWER_IN_SHORT)}
${payment}
Repeats: ${repeatsInShort(facts)}

Tests: ${TEST_TARGET}

## Documents

${link('OpenAPI', ROUTES.openapi, 'every operation')}
${link('Errors', ROUTES.errors, 'each code: meaning, charged or not, what to do')}
${link('Pricing', ROUTES.pricing, 'when a call is charged')}
${link('Capabilities', ROUTES.capabilities, 'every limit')}
${link('Snippets', ROUTES.snippets, 'curl, JavaScript, Python, MCP')}
${link('MCP', ROUTES.mcpManifest, `tools at POST ${ROUTES.mcp.path}`)}
${facts.schedules === undefined ? '' : `${link('Schedules', ROUTES.scheduleCapabilities, 'paid when they run')}\n`}${link('Verification keys', ROUTES.jwks, `receipts verify offline with these and the [verifier](${before}${ROUTES.verifierPackage.path}) (npm); ${ROUTES.logCheckpoint.path} heads their transparency log, ${facts.witnesses === null ? 'unwitnessed' : `cosigned by a quorum (${facts.witnesses.quorum}) of ${facts.witnesses.configured} witnesses`}`)}
`;
}
