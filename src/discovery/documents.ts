// Every document and file that the service publishes, in one list: HTTP serves it, OpenAPI describes it.
import { assetBytes, assetText } from '#src/assets.ts';
import { PURPOSE } from '#src/discovery/guidance.ts';
import { SERVICE } from '#src/domain/limits.ts';
import { addressOf, openDocument, type PublishedDocument, priced, shownTerms } from './document.ts';
import { capabilities } from './documents/capabilities.ts';
import { catalog } from './documents/catalog.ts';
import { errors } from './documents/errors.ts';
import { handoffCapabilities, scheduleCapabilities, secretsPolicy } from './documents/free-surfaces.ts';
import { mcpManifest } from './documents/mcp.ts';
import { pricing } from './documents/pricing.ts';
import { quickstart } from './documents/quickstart.ts';
import { snippets } from './documents/snippets.ts';
import {
  agentManifest,
  apiCatalog,
  llmsText,
  robotsText,
  x402Items,
  x402Manifest,
} from './documents/well-known.ts';
import type { Facts } from './facts.ts';
import {
  DOCUMENT_ROUTES,
  LOG_ROUTES,
  OPERATIONS,
  PAGE_ROUTES,
  ROUTES,
  type RouteFacts,
  SCHEDULE_OPERATIONS,
  WELL_KNOWN_ROUTES,
} from './routes.ts';

/** `id`: the document's name in the lists of this service. */
const listed = (facts: Facts, routes: Readonly<Record<string, RouteFacts>>) =>
  Object.entries(routes).map(([id, route]) => {
    const { mediaType, description: purpose } = route;
    return { id, address: addressOf(facts, route), mediaType, purpose };
  });

const discoveryIndex = openDocument([ROUTES.discovery, ROUTES.discoveryMetadata], (facts) => ({
  description:
    'Every document of this service. Each answers a GET, free; an address with braces is a template (RFC 6570). Those of the transparency log exist only if the relay has one.',
  documents: listed(facts, DOCUMENT_ROUTES),
  wellKnown: listed(facts, WELL_KNOWN_ROUTES),
  transparencyLog: listed(facts, LOG_ROUTES),
  pages: listed(facts, PAGE_ROUTES),
}));

/** The index of the interface: every operation. */
const apiIndex = openDocument([ROUTES.index], (facts) => ({
  version: SERVICE.version,
  description: PURPOSE,
  payment: shownTerms(facts),
  operations: [...OPERATIONS, ...(facts.schedules === undefined ? [] : SCHEDULE_OPERATIONS)].map(
    ([id, route]) => ({
      id,
      ...priced(facts, route),
      address: addressOf(facts, route),
      summary: route.summary,
    }),
  ),
  discovery: addressOf(facts, ROUTES.discovery),
}));

export const DOCUMENTS: readonly PublishedDocument[] = [
  handoffCapabilities,
  scheduleCapabilities,
  catalog,
  quickstart,
  pricing,
  errors,
  capabilities,
  secretsPolicy,
  snippets,
  apiIndex,
  discoveryIndex,
  mcpManifest,
];

/** A published file that is not a JSON document with a schema. */
export type PublishedFile = {
  readonly route: RouteFacts;
  readonly build: (facts: Facts) => string | Uint8Array<ArrayBuffer>;
};

const json = (route: RouteFacts, build: (facts: Facts) => unknown): PublishedFile => ({
  route,
  build: (facts) => JSON.stringify(build(facts)),
});

export const FILES: readonly PublishedFile[] = [
  json(ROUTES.x402, x402Manifest),
  json(ROUTES.x402Items, x402Items),
  json(ROUTES.agent, agentManifest),
  json(ROUTES.apiCatalog, apiCatalog),
  { route: ROUTES.robots, build: robotsText },
  { route: ROUTES.favicon, build: () => assetText('src/discovery/favicon.svg') },
  { route: ROUTES.faviconIco, build: () => assetBytes('src/discovery/favicon.ico') },
  { route: ROUTES.llms, build: llmsText },
];
