// The index of all documents, and the index of the interface: every operation, document, well-known file and page.
import { type Static, Type } from '@sinclair/typebox';
import {
  addressOf,
  type Document,
  endpoint,
  HTML_TYPE,
  heading,
  headingSchema,
  ICO_TYPE,
  JSON_TYPE,
  LINKSET_TYPE,
  paymentTerms,
  SVG_TYPE,
  TEXT_TYPE,
  Text,
  TILE_TYPE,
  termsSchema,
} from '#src/discovery/document.ts';
import type { Facts } from '#src/discovery/facts.ts';
import { PURPOSE } from '#src/discovery/guidance.ts';
import { OPERATIONS, ROUTES, type RouteFacts } from '#src/discovery/routes.ts';
import { SERVICE } from '#src/domain/limits.ts';
import { Closed, Link } from '#src/domain/schema-parts.ts';

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

/** Some are templates (RFC 6570). */
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

/** `id`: the document's name in the lists of this service. */
const Listed = Type.Array(Closed({ id: Text, address: Link, mediaType: Text, purpose: Text }));

const listed = (facts: Facts, rows: readonly Row[]): Static<typeof Listed> =>
  rows.map(([id, mediaType]) => {
    const route = ROUTES[id];
    const query = route === ROUTES.logConsistency ? '{?from,to}' : '';
    return { id, address: `${addressOf(facts, route)}${query}`, mediaType, purpose: route.description };
  });

/** The endpoint of an operation or tool with its price. */
export const pricedSchema = {
  method: Type.Union([Type.Literal('GET'), Type.Literal('POST')]),
  path: Type.String({ description: 'A parameter is written `{name}` (RFC 6570).' }),
  paid: Type.Boolean({ description: 'Charged where payment is enforced.' }),
  price: Type.Optional(Type.String({ description: 'Only of a paid one: US dollars, as in $1.50.' })),
};

const DiscoveryIndex = Closed({
  ...headingSchema,
  description: Text,
  documents: Listed,
  wellKnown: Listed,
  transparencyLog: Listed,
  pages: Listed,
});

export const discoveryIndex: Document<typeof DiscoveryIndex> = {
  routes: [ROUTES.discovery, ROUTES.discoveryMetadata],
  answer: 'The index.',
  schema: DiscoveryIndex,
  build: (facts) => ({
    ...heading(facts),
    description:
      'Every document of this service. Each answers a GET, free; an address with braces is a template (RFC 6570). Those of the transparency log exist only if the relay has one.',
    documents: listed(facts, DOCUMENTS),
    wellKnown: listed(facts, WELL_KNOWN),
    transparencyLog: listed(facts, TRANSPARENCY_LOG),
    pages: listed(facts, PAGES),
  }),
};

const ApiIndex = Closed({
  ...headingSchema,
  version: Text,
  description: Text,
  payment: Closed(termsSchema),
  operations: Type.Array(
    Closed({
      id: Type.String({ description: '`operationId` of the OpenAPI document.' }),
      ...pricedSchema,
      address: Type.String({ description: 'Absolute, with parameters as in `path`.' }),
      summary: Text,
    }),
  ),
  documents: Listed,
  pages: Listed,
});

export const apiIndex: Document<typeof ApiIndex> = {
  routes: [ROUTES.index],
  answer: 'The index.',
  schema: ApiIndex,
  build: (facts) => ({
    ...heading(facts),
    version: SERVICE.version,
    description: PURPOSE,
    payment: paymentTerms(facts),
    operations: OPERATIONS.map(([id, route]) => ({
      id,
      ...priced(facts, route),
      address: addressOf(facts, route),
      summary: route.summary,
    })),
    documents: listed(facts, DOCUMENTS),
    pages: listed(facts, PAGES),
  }),
};

export function priced({ offer }: Facts, route: RouteFacts) {
  return { ...endpoint(route), ...(route.paid ? { price: offer.price } : {}) };
}
