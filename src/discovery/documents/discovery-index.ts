// Every document, well-known file and page, once: what is told of where to read on.

import type { Facts } from '#src/discovery/facts.ts';
import { ROUTES } from '#src/discovery/routes.ts';
import { addressOf, heading } from './document-parts.ts';

export const JSON_TYPE = 'application/json';
export const TEXT_TYPE = 'text/plain; charset=utf-8';
export const TILE_TYPE = 'application/octet-stream';
const HTML_TYPE = 'text/html; charset=utf-8';
/** With the profile of RFC 9727 §7.3. */
export const LINKSET_TYPE = 'application/linkset+json; profile="https://www.rfc-editor.org/info/rfc9727"';
export const SVG_TYPE = 'image/svg+xml';
export const ICO_TYPE = 'image/vnd.microsoft.icon';

type Row = readonly [id: keyof typeof ROUTES, mediaType: string];

const DOCUMENTS: readonly Row[] = [
  ['index', JSON_TYPE],
  ['discovery', JSON_TYPE],
  ['catalog', JSON_TYPE],
  ['quickstart', JSON_TYPE],
  ['snippets', JSON_TYPE],
  ['pricing', JSON_TYPE],
  ['capabilities', JSON_TYPE],
  ['mcpManifest', JSON_TYPE],
  ['handoffCapabilities', JSON_TYPE],
  ['scheduleCapabilities', JSON_TYPE],
  ['secretsPolicy', JSON_TYPE],
  ['openapi', JSON_TYPE],
  ['llms', TEXT_TYPE],
];

const WELL_KNOWN: readonly Row[] = [
  ['apiCatalog', LINKSET_TYPE],
  ['x402', JSON_TYPE],
  ['x402Items', JSON_TYPE],
  ['agent', JSON_TYPE],
  ['mcpWellKnown', JSON_TYPE],
  ['jwks', JSON_TYPE],
  ['did', JSON_TYPE],
  ['robots', TEXT_TYPE],
  ['favicon', SVG_TYPE],
  ['faviconIco', ICO_TYPE],
];

/** Templates (RFC 6570) among them. */
const TRANSPARENCY_LOG: readonly Row[] = [
  ['logCheckpoint', TEXT_TYPE],
  ['logKey', TEXT_TYPE],
  ['logTile', TILE_TYPE],
  ['logProof', TEXT_TYPE],
  ['logConsistency', JSON_TYPE],
];

const PAGES: readonly Row[] = [
  ['frontPage', HTML_TYPE],
  ['statusPage', HTML_TYPE],
  ['docsPage', HTML_TYPE],
  ['verifyPage', HTML_TYPE],
];

export type Listed = {
  /** The document's name in the lists of this service. */
  readonly id: string;
  readonly address: string;
  readonly mediaType: string;
  readonly purpose: string;
};

export const documentsListed = (facts: Facts): readonly Listed[] => listed(facts, DOCUMENTS);
export const pagesListed = (facts: Facts): readonly Listed[] => listed(facts, PAGES);

/** `GET /api/discovery`. */
export function documentIndex(facts: Facts) {
  return {
    ...heading(facts),
    description:
      'Every document of this service. Each answers a plain GET, free; those of the transparency log where the relay keeps one.',
    documents: documentsListed(facts),
    wellKnown: listed(facts, WELL_KNOWN),
    transparencyLog: listed(facts, TRANSPARENCY_LOG),
    pages: pagesListed(facts),
  };
}

function listed(facts: Facts, rows: readonly Row[]): readonly Listed[] {
  return rows.map(([id, mediaType]) => {
    const route = ROUTES[id];
    return { id, address: addressOf(facts, route), mediaType, purpose: route.description };
  });
}
