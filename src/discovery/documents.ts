// Every document and file that the service publishes, in one list: HTTP serves it, OpenAPI describes it.
import { readFileSync } from 'node:fs';
import { type Document, textFile } from './document.ts';
import { capabilities } from './documents/capabilities.ts';
import { catalog } from './documents/catalog.ts';
import { apiIndex, discoveryIndex } from './documents/discovery-index.ts';
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
  { route: ROUTES.favicon, build: () => textFile(new URL('favicon.svg', import.meta.url)) },
  {
    route: ROUTES.faviconIco,
    build: () => Uint8Array.from(readFileSync(new URL('favicon.ico', import.meta.url))),
  },
  { route: ROUTES.llms, build: llmsText },
];
