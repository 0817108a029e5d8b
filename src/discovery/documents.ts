// Every document and file that the service publishes, in one list: HTTP serves it, OpenAPI describes it.
import { type Document, ICO_TYPE, JSON_TYPE, LINKSET_TYPE, SVG_TYPE, TEXT_TYPE } from './document.ts';
import { capabilities } from './documents/capabilities.ts';
import { catalog } from './documents/catalog.ts';
import { apiIndex, discoveryIndex } from './documents/discovery-index.ts';
import { handoffCapabilities } from './documents/handoff-capabilities.ts';
import { llmsText } from './documents/llms.ts';
import { mcpManifest } from './documents/mcp-manifest.ts';
import { pricing } from './documents/pricing.ts';
import { quickstart } from './documents/quickstart.ts';
import { scheduleCapabilities } from './documents/schedule-capabilities.ts';
import { secretsPolicy } from './documents/secrets-policy.ts';
import { snippets } from './documents/snippets.ts';
import { agentManifest, apiCatalog, robotsText, x402Items, x402Manifest } from './documents/well-known.ts';
import type { Facts } from './facts.ts';
import { binaryFile, textFile } from './release-file.ts';
import { ROUTES, type RouteFacts } from './routes.ts';

export const DOCUMENTS: readonly Document[] = [
  handoffCapabilities,
  scheduleCapabilities,
  catalog,
  quickstart,
  pricing,
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
  readonly mediaType: string;
  readonly build: (facts: Facts) => string | Uint8Array<ArrayBuffer>;
};

const json = (route: RouteFacts, build: (facts: Facts) => unknown, mediaType = JSON_TYPE): PublishedFile => ({
  route,
  mediaType,
  build: (facts) => JSON.stringify(build(facts)),
});

export const FILES: readonly PublishedFile[] = [
  json(ROUTES.x402, x402Manifest),
  json(ROUTES.x402Items, x402Items),
  json(ROUTES.agent, agentManifest),
  json(ROUTES.apiCatalog, apiCatalog, LINKSET_TYPE),
  { route: ROUTES.robots, mediaType: TEXT_TYPE, build: robotsText },
  {
    route: ROUTES.favicon,
    mediaType: SVG_TYPE,
    build: textFile(new URL('favicon.svg', import.meta.url)),
  },
  {
    route: ROUTES.faviconIco,
    mediaType: ICO_TYPE,
    build: binaryFile(new URL('favicon.ico', import.meta.url)),
  },
  { route: ROUTES.llms, mediaType: TEXT_TYPE, build: llmsText },
];
